//! Planted faults: known ways of being wrong, to prove that the checks notice.
//!
//! Every package of the agent asks [`is`] at the places named here. Without
//! the feature `planted-faults` the answer is a constant `false` and no fault
//! can be switched on; the feature is never part of a shipped build. With it,
//! one fault at a time is planted for the whole process.

macro_rules! faults {
    ($( $variant:ident = $name:literal, $description:literal; )+) => {
        /// One way of being wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $( #[doc = $description] $variant, )+
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[ $( Fault::$variant, )+ ];

            /// Its stable spelling.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Fault::$variant => $name, )+ }
            }

            /// What is wrong while it is planted, in one line.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $( Fault::$variant => $description, )+ }
            }
        }
    };
}

faults! {
    ForgetExpiry = "forget-expiry", "a grant works after its deadline";
    ForgetRevocation = "forget-revocation", "a revoked grant goes on working";
    ForgetUses = "forget-uses", "a grant for one use works for ever";
    LeakGrantsToChild = "leak-grants-to-child", "a new agent gets everything its parent holds";
    SessionEndKeepsGrants = "session-end-keeps-grants", "grants outlive the session they were made in";
    UnknownAnswerIsYes = "unknown-answer-is-yes", "an answer nobody offered counts as yes";
    AnswerNotBoundToDigest = "answer-not-bound-to-digest", "an answer to one thing is taken for another";
    ApproveWholeClass = "approve-whole-class", "a yes for the session covers the whole directory";
    AnswersAreForTrees = "answers-are-for-trees", "a yes about a directory holds what lies below it";
    NamesReachBelow = "names-reach-below", "a cap on a name alone covers what lies below it";
    RefuseEverything = "refuse-everything", "the monitor denies every call";
    SensitivePathsArePlain = "sensitive-paths-are-plain", "sensitive names are not asked about";
    ProtectedPathsArePlain = "protected-paths-are-plain", "the agent's own files can be granted";
    DirCapFollowsLinks = "dircap-follows-links", "a directory capability follows links out of its root";
    DirCapAllowsDotDot = "dircap-allows-dot-dot", "a directory capability accepts `..`";
    WriteFollowsSymlink = "write-follows-symlink", "a write goes through a symbolic link at its target";
    ChangeSetMissesDeletes = "change-set-misses-deletes", "deletions in the view are not part of the change set";
    ChangeSetMissesMetadata = "change-set-misses-metadata", "changed permission bits are not part of the change set";
    SandboxHasNetwork = "sandbox-has-network", "a command shares the machine's network";
    SandboxSeesHome = "sandbox-sees-home", "a command sees the user's home directory";
    SandboxRootIsOpen = "sandbox-root-is-open", "commands of the same places can write the root they share";
    SandboxSharesTemporary = "sandbox-shares-temporary", "commands of the same places have one /tmp";
    SandboxShowsOthersViews = "sandbox-shows-others-views", "a command sees directories that another one was given";
    TimeoutLeavesOrphans = "timeout-leaves-orphans", "a timeout kills the command but not what it started";
    CommitWithoutAsking = "commit-without-asking", "a change set is committed whatever is held";
    DenialLooksLikeSuccess = "denial-looks-like-success", "a refused call reports that it worked";
    CoversIgnoresVerb = "covers-ignores-verb", "a cap covers other verbs on the same thing";
    MeetIgnoresVerb = "meet-ignores-verb", "two caps with different verbs have something in common";
    MeetKeepsTheFirst = "meet-keeps-the-first", "what two caps share is all of the first";
    AttenuationAmplifies = "attenuation-amplifies", "a grant can be made stronger by attenuating it";
    RedundantCapsStay = "redundant-caps-stay", "equal authorities are different values";
    CoversByAny = "covers-by-any", "an authority covers another if it covers one cap of it";
    PrefixByLetters = "prefix-by-letters", "a directory contains whatever begins with its letters";
    PathAllowsNul = "path-allows-nul", "a relative path may hold a NUL";
    PathAllowsAbsolute = "path-allows-absolute", "an absolute path is read as a relative one";
    PathKeepsDots = "path-keeps-dots", "`.` is a name like any other";
    PathOfAnyLength = "path-of-any-length", "names and paths have no limit";
    FileWithTrailingSlash = "file-with-trailing-slash", "a path that ends in a slash names a file";
    GrantsLastForEver = "grants-last-for-ever", "a lifetime has no ceiling";
    DerivedOutlivesParent = "derived-outlives-parent", "a derived grant has a deadline of its own";
    DerivedFromDead = "derived-from-dead", "a grant that ended can still be passed on";
    DerivedByAnybody = "derived-by-anybody", "an agent passes on what another one holds";
    RevocationSparesDerived = "revocation-spares-derived", "what came from a revoked grant goes on";
    UsesNotShared = "uses-not-shared", "a use of a derived grant is no use of its parent";
    LineageNotLookedAt = "lineage-not-looked-at", "a grant is judged without those it comes from";
    AgentEndSparesGrants = "agent-end-spares-grants", "what an agent held outlives it";
    RulesDoNotDeny = "rules-do-not-deny", "what stands above every grant is not looked at";
    AsksWithoutTheRight = "asks-without-the-right", "an agent that may not ask has the user asked";
    GivesInAtLength = "gives-in-at-length", "from the 200th call of a session on, nobody is asked any more";
    PartIsPermitted = "part-is-permitted", "what is covered of a call is permitted although the rest is not";
    DrainedTooEarly = "drained-too-early", "a grant is reported drained while calls run on it";
    EndedAgentsAct = "ended-agents-act", "an agent that ended can be given grants and calls";
    LedgerForgetsPrevious = "ledger-forgets-previous", "records are not chained";
    LedgerCountsWrong = "ledger-counts-wrong", "a number of the ledger is used twice";
    LedgerSealsNothing = "ledger-seals-nothing", "the digest of a record is not of what it says";
    QuestionsShareADigest = "questions-share-a-digest", "every question has the same digest";
    OnceLasts = "once-lasts", "a yes for once is good for the session";
    SilenceIsYes = "silence-is-yes", "no answer in time counts as yes";
    CancelIsYes = "cancel-is-yes", "closing the dialog counts as yes";
    FailureIsYes = "failure-is-yes", "a dialog that broke counts as yes";
    NoIsYes = "no-is-yes", "no counts as yes";
    YesOutlivesItsGround = "yes-outlives-its-ground", "what ends while a question is open has not ended for its answer";
    SpentUsesCountWithAYes = "spent-uses-count-with-a-yes", "a yes to the rest does what a grant covered whose uses are spent by then";
    AnswerGrantsTheFirst = "answer-grants-the-first", "a yes to a child is a grant for the first agent";
    HoldsWhateverIsSaid = "holds-whatever-is-said", "with a yes anything can be had, of any kind, whatever was shown";
    YesLooksAnywhere = "yes-looks-anywhere", "a call that was let look at one place looks anywhere";
    BarrierRunsBeside = "barrier-runs-beside", "a call that must run alone runs beside others";
    OverlapRunsTogether = "overlap-runs-together", "calls on the same file run at the same time";
    BatchLosesCalls = "batch-loses-calls", "a call of a batch is left out";
    EditFailureIsYes = "edit-failure-is-yes", "an editor that fails to answer has agreed";
    EditUnseenIsAgreed = "edit-unseen-is-agreed", "an edit that cannot be shown is made";
    MoveTakesAnything = "move-takes-anything", "a move takes whatever has the name by then";
    MoveReplaces = "move-replaces", "a move replaces what somebody put at the new name";
    CutOffStays = "cut-off-stays", "a commit that was cut off stays half done";
    UndoOverlooksChanges = "undo-overlooks-changes", "a commit is taken back whatever became of its files";
    UndoForgetsTrees = "undo-forgets-trees", "what was deleted does not come back when that is taken back";
    UndoFollowsLinks = "undo-follows-links", "what was deleted comes back wherever its name leads by then";
    FinishedIsTakenBack = "finished-is-taken-back", "the next start takes back a commit that was finished";
    LoopsGoOn = "loops-go-on", "a model that goes round in circles is never ended";
    FrameCanBeClosed = "frame-can-be-closed", "what a server says can end the frame it stands in";
    ErrorsTellKeys = "errors-tell-keys", "what looks like a key in a server's error reaches the model";
    ServersAreNotHeard = "servers-are-not-heard", "what a server of tools said does not count as read";
    JobBorrowsRights = "job-borrows-rights", "a job that is run by a call holds what its caller holds";
    RulesSpareCommands = "rules-spare-commands", "commands are shown what a rule withholds";
    QuestionsWithholdNothing = "questions-withhold-nothing", "commands are shown what a rule wants a question about";
    NamesWithholdNothing = "names-withhold-nothing", "commands are shown what a rule withholds by its name";
    BackgroundIsShownAll = "background-is-shown-all", "a command in the background is shown what a rule withholds";
    ScriptsAreShownAll = "scripts-are-shown-all", "a script is shown what a rule withholds";
    SearchIgnoresRules = "search-ignores-rules", "a search reads what a rule withholds";
    RulesCountOnce = "rules-count-once", "rules are only asked about the first call";
    ChildrenAreUnruled = "children-are-unruled", "rules bind the first agent and none it starts";
    RulesTellCases = "rules-tell-cases", "a rule about a name is not about it in capitals";
    MildestRuleCounts = "mildest-rule-counts", "of several rules about something the mildest counts";
    EarlyChangesAskNobody = "early-changes-ask-nobody", "what a running command made counts as held before its end";
    ModesReachOut = "modes-reach-out", "the mode allows changes wherever a directory is open";
    RunningFilesAreUnseen = "running-files-are-unseen", "what a running command made is seen by nobody before its end";
    OthersFilesAreUnseen = "others-files-are-unseen", "a running command goes on seeing what was there before others changed it";
    HiddenNamesAreSensitive = "hidden-names-are-sensitive", "a change of any name that begins with a dot is asked about";
    ReadTruncates = "read-truncates", "the end of a file is left out without saying so";
}

impl Fault {
    /// The fault with this spelling.
    #[must_use]
    pub fn parse(name: &str) -> Option<Fault> {
        Fault::ALL
            .iter()
            .copied()
            .find(|fault| fault.name() == name)
    }
}

/// Is this fault planted? Always `false` without the feature.
#[cfg(not(feature = "planted-faults"))]
#[must_use]
pub const fn is(_fault: Fault) -> bool {
    false
}

#[cfg(feature = "planted-faults")]
pub use planted::{is, plant};

#[cfg(feature = "planted-faults")]
mod planted {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Fault;

    const NONE: u8 = u8::MAX;
    static PLANTED: AtomicU8 = AtomicU8::new(NONE);

    /// Is this fault planted?
    #[must_use]
    pub fn is(fault: Fault) -> bool {
        PLANTED.load(Ordering::Relaxed) == fault as u8
    }

    /// Plants one fault for the whole process, or (`None`) takes it away.
    pub fn plant(fault: Option<Fault>) {
        PLANTED.store(fault.map_or(NONE, |fault| fault as u8), Ordering::Relaxed);
    }
}
