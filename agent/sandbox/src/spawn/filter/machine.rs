//! A small machine that runs a filter as the kernel would, for the tests.

use seccompiler::sock_filter;

use super::emit::{
    AND, AT_ARCHITECTURE, AT_ARGUMENTS, AT_NUMBER, JUMP, JUMP_ANY_BIT, JUMP_AT_LEAST, JUMP_EQUAL,
    LOAD, RETURN,
};

/// One system call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub architecture: u32,
    pub number: u32,
    pub arguments: [u64; 6],
}

impl Call {
    fn word(&self, at: u32) -> u32 {
        let half = |value: u64, high: bool| {
            u32::try_from(if high {
                value >> 32
            } else {
                value & 0xffff_ffff
            })
            .unwrap()
        };
        match at {
            AT_NUMBER => self.number,
            AT_ARCHITECTURE => self.architecture,
            _ => {
                let place = usize::try_from((at - AT_ARGUMENTS) / 8).unwrap();
                half(self.arguments[place], (at - AT_ARGUMENTS) % 8 == 4)
            }
        }
    }
}

/// What the program returns, and after how many instructions.
pub(super) fn run(program: &[sock_filter], call: &Call) -> (u32, usize) {
    const JUMP_GREATER: u16 = 0x25;
    let mut accumulator = 0_u32;
    let mut at = 0_usize;
    let mut steps = 0;
    loop {
        let instruction = &program[at];
        steps += 1;
        at += 1;
        let mut branch = |yes: bool| {
            at += usize::from(if yes { instruction.jt } else { instruction.jf });
        };
        match instruction.code {
            LOAD => accumulator = call.word(instruction.k),
            AND => accumulator &= instruction.k,
            JUMP => at += usize::try_from(instruction.k).unwrap(),
            JUMP_EQUAL => branch(accumulator == instruction.k),
            JUMP_AT_LEAST => branch(accumulator >= instruction.k),
            JUMP_GREATER => branch(accumulator > instruction.k),
            JUMP_ANY_BIT => branch(accumulator & instruction.k != 0),
            RETURN => return (instruction.k, steps),
            other => panic!("instruction {other:#x}"),
        }
    }
}
