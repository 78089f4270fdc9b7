// Web Push on the page's side: the subscription, and what service-worker.js says.
import { bytes } from "./base64.js";
import { PhoneError } from "./texts.js";

/** Of the words between page and service worker. */
const VERSION = 1;
const ANSWER_TIME = 2_000;

export class Pusher {
  #registration = null;
  #stop = null;
  #key = null;
  fault = null;

  constructor(phone, seams) { Object.assign(this, { phone, seams }); }

  async enable(registration, worker) {
    this.#stop?.();
    this.#stop = worker ? this.seams.listen(worker, "message", (event) => this.#heard(event)) : null;
    this.#registration = registration;
    this.#key = null;
    try { await this.subscribe(); } catch (error) { this.tell(error); throw error; }
    await this.#checkVersion(registration);
  }

  /** Again where the gateway's key is another. */
  async subscribe() {
    const { pushKey } = this.phone;
    const manager = this.#registration?.pushManager;
    if (!this.#registration || (pushKey && pushKey === this.#key)) return;
    if (!manager || !pushKey) throw new PhoneError("pushUnsupported", manager ? "the gateway has no Web Push" : "");
    let found = await manager.getSubscription();
    const key = bytes(pushKey);
    const known = found?.options?.applicationServerKey;
    if (found && !(known && new Uint8Array(known).join() === key.join())) {
      await found.unsubscribe();
      found = null;
    }
    try {
      found ??= await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    } catch (error) {
      throw new PhoneError(error?.name === "NotAllowedError" ? "pushDenied" : "pushUnsupported", error?.message);
    }
    this.#key = pushKey;
    const { endpoint, keys } = found.toJSON();
    this.phone.register({ kind: "webpush", token: JSON.stringify({ endpoint, keys }) });
  }

  async disable() {
    const found = await this.#registration?.pushManager?.getSubscription();
    await found?.unsubscribe();
    this.close();
    this.tell(null);
    this.phone.register(null);
  }

  /** A service worker of an older version rings as it did; it is replaced by the next load of the page. */
  async #checkVersion(registration) {
    if (!registration.active || !this.seams.MessageChannel) return;
    const { port1, port2 } = new this.seams.MessageChannel();
    const version = await new Promise((done) => {
      const timer = this.seams.clock.setTimeout(() => done(0), ANSWER_TIME);
      port1.onmessage = (event) => { this.seams.clock.clearTimeout(timer); done(event.data?.version ?? 0); };
      registration.active.postMessage({ trunkline: "version" }, [port2]);
    });
    port1.close();
    if (version >= VERSION) return this.tell(null);
    registration.update?.().catch?.(() => {});
    this.tell(new PhoneError("workerOutdated"));
  }

  tell(fault) {
    this.fault = fault;
    this.phone.emit("registered", { error: fault?.code ?? null });
  }

  /** `{trunkline: "push", push}`: a call; `answers` and `declines` are the notification's buttons. The port says that the page lives. */
  #heard(event) {
    const { data } = event;
    if (data?.trunkline !== "push" || typeof data.push?.wake !== "string" || typeof data.push.call !== "string") return;
    event.ports?.[0]?.postMessage({ trunkline: "here" });
    const call = this.phone.push(data.push);
    if (data.push.declines) call?.decline();
  }

  /** The notification of a call that is over, or answered here. */
  async close(call) {
    if (!call) {
      this.#stop?.();
      this.#stop = this.#registration = this.#key = null;
      return;
    }
    const shown = (await this.#registration?.getNotifications?.({ tag: call })?.catch?.(() => [])) ?? [];
    for (const one of shown) one.close();
  }
}
