// A client built on the npm SDK; reads and tells the same as peer.py.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const given = JSON.parse(readFileSync(0, "utf8"));
const [program, ...rest] = given.command;
const agent = spawn(program, rest, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const told = { stops: [], told: [], asked: [], forms: [], updates: [] };
const of = acp.methods.agent.session;
let answers = [];
// What is typed into forms; without any, the client shows none.
const typed = given.forms;
let cancel = async () => {};

await acp
  .client({ name: "peer" })
  .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
    told.asked.push({
      toolCall: params.toolCall,
      options: params.options.map((option) => option.optionId),
    });
    let answer = answers.shift();
    if (answer === "error") throw new Error("no");
    if (answer === "silence") await new Promise(() => {});
    if (answer === "die") process.exit(9);
    if (answer === "cancel") {
      await cancel();
      answer = "cancelled";
    }
    return answer === "cancelled"
      ? { outcome: { outcome: "cancelled" } }
      : { outcome: { outcome: "selected", optionId: answer } };
  })
  .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => {
    if (params.path.endsWith("/unsaved.txt")) return { content: "typed\n" };
    if (!existsSync(params.path)) throw acp.RequestError.resourceNotFound(params.path);
    return { content: readFileSync(params.path, "utf8") };
  })
  .onRequest(acp.methods.client.elicitation.create, ({ params }) => {
    told.forms.push(params);
    const answer = typed.shift();
    return answer === undefined ? { action: "decline" } : { action: "accept", content: { answer } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    told.updates.push(params.update);
  })
  .connectWith(stream, async (ctx) => {
    await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true }, ...(typed && { elicitation: { form: {} } }) },
    });
    const place = { cwd: given.cwd, mcpServers: [] };
    const { sessionId } = await ctx.request(of.new, place);
    cancel = () => ctx.notify(of.cancel, { sessionId });
    for (const step of given.steps) {
      if (step.mode) {
        await ctx.request(of.setMode, { sessionId, modeId: step.mode });
      } else if (step.option) {
        const [configId, value] = step.option;
        const set = await ctx.request(of.setConfigOption, { sessionId, configId, value });
        told.told.push(set.configOptions.length);
      } else if (step.again) {
        const { sessions } = await ctx.request(of.list, { cwd: given.cwd });
        await ctx.request(of.close, { sessionId });
        const taken = await ctx.request(of[step.again], { sessionId, ...place });
        told.told.push(sessions.some((one) => one.sessionId === sessionId));
        told.told.push(taken.modes.currentModeId);
      } else {
        answers = [...step.answers];
        const prompt = [{ type: "text", text: step.prompt }];
        const done = await ctx.request(of.prompt, { sessionId, prompt });
        told.stops.push(done.stopReason);
      }
    }
  });
agent.stdin.end();
console.log(JSON.stringify(told));
process.exit(0);
