//! `/plan WORDS`: from a request to a plan that was carried out, or was not.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use agent_client_protocol::{
    Error,
    v1::schema::{PromptResponse, SessionUpdate, StopReason},
};

use super::{
    super::{
        person::Person,
        planned::{self, Course, Looker, Reader},
    },
    Seat,
};
use crate::{
    actions::{self, Risk, risk},
    executor,
    planner::ask::Planner,
    screen::visible,
};

impl Seat {
    pub(super) fn plan(&mut self, words: &str) -> Result<PromptResponse, Error> {
        let ended = |seat: &Self, words: String| {
            if seat.control.is_cancelled() {
                return Ok(PromptResponse::new(StopReason::Cancelled));
            }
            seat.link.say(&words);
            Ok(PromptResponse::new(StopReason::EndTurn))
        };
        let by = self.runtime.first_agent();
        let mut planner = Planner {
            model: &self.backend.model,
            port: &mut *self.backend.port,
            toolbox: Arc::new(actions::toolbox()),
        };
        let plan = match planner.plan(&mut self.runtime, by, words) {
            Ok(plan) => plan,
            Err(why) => {
                let words = format!("There is no plan, and nothing was done: {why}");
                return ended(self, words);
            }
        };
        self.course = Course::of(&plan, &self.ground.cwd);
        self.link.tell(SessionUpdate::Plan(self.course.shown()));
        if risk::worst(plan.steps(), &self.ground.cwd, plan.toolbox()) == Risk::Blocked {
            let words = "The plan names a place outside the workspace, or would delete the workspace itself; \
                         nothing was done.";
            return ended(self, words.to_owned());
        }
        let person = Person {
            link: self.link.clone(),
            control: Arc::clone(&self.control),
            scene: Rc::clone(&self.scene),
            within: self.within,
            base: self.ground.cwd.clone(),
        };
        if !person.plan(&plan) {
            return ended(
                self,
                "The plan was not approved; nothing was done.".to_owned(),
            );
        }
        // Whoever plans further may be the one who reads.
        let planner = RefCell::new(&mut self.backend);
        let reader = self.picker.as_mut().map(RefCell::new);
        let mut picker = Reader(reader.as_ref().unwrap_or(&planner));
        let mut looker = Looker {
            person,
            planner: &planner,
            course: &mut self.course,
            in_force: &mut self.in_force,
            floor: self.floor,
        };
        let machine = executor::run(&mut self.runtime, plan, &mut looker, &mut picker);
        self.scene.borrow_mut().close_question(&self.link);
        self.course.end(&machine);
        self.link.tell(SessionUpdate::Plan(self.course.shown()));
        let mut told: Vec<String> = self
            .runtime
            .take_told()
            .iter()
            .map(|line| visible(line))
            .collect();
        told.push(planned::summed_up(&machine));
        ended(self, told.join("\n"))
    }
}
