//! What the agent does, as its library and as its program: one test binary, one file for each subject.

mod acp;
mod acp_bad;
mod acp_commit;
mod acp_peers;
mod acp_plan;
mod audit_cli;
mod background;
mod beginning;
mod caps_cli;
mod chat;
mod chat_http;
mod cli;
mod config_cli;
mod cron;
mod external;
mod grammar;
mod ledger_crash;
mod links;
mod live;
mod midrun;
mod model_http;
mod network;
mod patches;
mod plan_terminal;
mod planning;
mod plans;
#[cfg(feature = "planted-faults")]
mod planted;
mod prompt;
mod runtime;
mod session_cli;
mod standing;
mod store_file;
mod support;
mod terminal_user;
mod undo;
