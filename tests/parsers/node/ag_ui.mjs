// The official client of AG-UI, with all that it checks. A request is answered in two steps: what the page does is answered with the body that
// it posts, and `reply` hands it the response.
import { HttpAgent } from "@ag-ui/client";

let complaints = [];
for (const level of ["warn", "error"]) console[level] = (...words) => complaints.push(words.map(String).join(" "));

class Page extends HttpAgent {
  constructor(messages) {
    super({ url: "http://127.0.0.1/", threadId: "thread", initialMessages: messages, fetch: (_, { body }) => this.fetched(body) });
  }

  fetched(body) {
    return new Promise((resolve) => { this.respond = resolve; this.posted(JSON.parse(body)); });
  }

  // Answers every open interrupt, as the client demands: as `answers` says by the id of its call or its own, else with "cancelled".
  post({ text, id, results = [], answers = {} }) {
    if (text !== undefined) this.messages.push({ id, role: "user", content: text });
    for (const result of results) this.messages.push({ role: "tool", ...result });
    const resume = this.pendingInterrupts.map((one) => ({ interruptId: one.id, ...(answers[one.toolCallId ?? one.id] ?? { status: "cancelled" }) }));
    this.told = { events: 0, failed: null, finished: null, pending: [], calls: [] };
    const subscriber = {
      onEvent: () => { this.told.events += 1; },
      onRunErrorEvent: ({ event }) => { this.told.failed = event; },
      onToolCallEndEvent: ({ event, toolCallName, toolCallArgs }) => { this.told.calls.push([event.toolCallId, toolCallName, toolCallArgs]); },
      onRunFinishedEvent: ({ event, pendingToolCallIds }) => { this.told.finished = event; this.told.pending = pendingToolCallIds ?? []; },
    };
    return new Promise((resolve) => {
      this.posted = resolve;
      this.busy = this.runAgent({ runId: "run", ...(resume.length ? { resume } : {}) }, subscriber).catch((error) => complaints.push(`thrown: ${error}`));
    });
  }

  async reply(pieces) {
    const stream = new ReadableStream({
      start(controller) { for (const piece of pieces) controller.enqueue(Buffer.from(piece, "base64")); controller.close(); },
    });
    this.respond(new Response(stream, { headers: { "content-type": "text/event-stream" } }));
    await this.busy;
    const told = { ...this.told, messages: this.messages, interrupts: this.pendingInterrupts, complaints };
    complaints = [];
    return told;
  }
}

const pages = new Map();

export async function handle({ page, ...request }) {
  const agent = pages.get(page) ?? pages.set(page, new Page(request.messages ?? [])).get(page);
  if (request.post) return { body: await agent.post(request.post) };
  if (request.reply) return agent.reply(request.reply);
  pages.delete(page);
  return {};
}
