// A chat of the AI SDK, as a page with `useChat` has it, over the package's own transport. A request is answered in two steps: what the page
// does is answered with the body that it posts, and `reply` hands it the response.
import { AbstractChat, DefaultChatTransport, validateUIMessages } from "ai";

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.with(index, message); };
  snapshot = (value) => structuredClone(value);
}

class Page extends AbstractChat {
  constructor() {
    super({
      state: new State(),
      transport: new DefaultChatTransport({ fetch: (_, { body }) => this.fetched(body) }),
      onError: (error) => this.errors.push({ name: error.name, message: error.message }),
      onToolCall: ({ toolCall }) => { this.calls.push(toolCall); },
      onData: (part) => { this.data.push(part); },
    });
    Object.assign(this, { errors: [], calls: [], data: [] });
  }

  fetched(body) {
    return new Promise((resolve) => { this.respond = resolve; this.posted(JSON.parse(body)); });
  }

  post(doing) {
    return new Promise((resolve) => { this.posted = resolve; this.busy = doing(); });
  }

  async reply(pieces) {
    const stream = new ReadableStream({
      start(controller) { for (const piece of pieces) controller.enqueue(Buffer.from(piece, "base64")); controller.close(); },
    });
    this.respond(new Response(stream, { status: 200 }));
    await this.busy;
    const { errors, calls, data, messages, status } = this;
    Object.assign(this, { errors: [], calls: [], data: [] });
    const valid = await validateUIMessages({ messages: structuredClone(messages) }).then(() => null, (error) => String(error));
    return { errors, calls, data, status, valid, message: messages.at(-1), count: messages.length };
  }

  async decide({ approvals = [], outputs = [], options }) {
    for (const approval of approvals) await this.addToolApprovalResponse(approval);
    for (const output of outputs) await this.addToolOutput(output);
    await this.sendMessage(undefined, options);
  }
}

const pages = new Map();

export async function handle({ page, ...request }) {
  const chat = pages.get(page) ?? pages.set(page, new Page()).get(page);
  if (request.text !== undefined) return { body: await chat.post(() => chat.sendMessage({ text: request.text })) };
  if (request.decide) return { body: await chat.post(() => chat.decide(request.decide)) };
  if (request.reply) return chat.reply(request.reply);
  pages.delete(page);
  return {};
}
