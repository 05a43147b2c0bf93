// A client built on the npm SDK; reads and tells the same as peer.py.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const given = JSON.parse(readFileSync(0, "utf8"));
const [program, ...rest] = given.command;
const agent = spawn(program, rest, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const told = { stops: [], asked: [], updates: [] };
let answers = [];
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
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    told.updates.push(params.update);
  })
  .connectWith(stream, async (ctx) => {
    await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
    });
    const { sessionId } = await ctx.request(acp.methods.agent.session.new, {
      cwd: given.cwd,
      mcpServers: [],
    });
    cancel = () => ctx.notify(acp.methods.agent.session.cancel, { sessionId });
    for (const step of given.steps) {
      if (step.mode) {
        await ctx.request(acp.methods.agent.session.setMode, { sessionId, modeId: step.mode });
        continue;
      }
      answers = [...step.answers];
      const done = await ctx.request(acp.methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text: step.prompt }],
      });
      told.stops.push(done.stopReason);
    }
  });
agent.stdin.end();
console.log(JSON.stringify(told));
process.exit(0);
