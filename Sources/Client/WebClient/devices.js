// Microphones and loudspeakers: which are there, which is chosen, what hinders.
import { PhoneError, microphoneError } from "./texts.js";

const PROCESSING = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

export class Devices {
  fault = null;
  mayAsk = false;
  #permission = null;
  #stops = [];

  /** `given`: the app opens the microphone itself. */
  constructor(phone, seams, given) {
    Object.assign(this, { phone, seams, given });
    this.chosen = { microphone: this.#read("microphone"), loudspeaker: this.#read("loudspeaker") };
    const media = seams.mediaDevices;
    if (media?.addEventListener) this.#stops.push(seams.listen(media, "devicechange", () => this.check(true)));
    this.check();
  }

  /** Storage may be denied: the choice then lasts as long as the page. */
  #read(name) { try { return this.seams.storage?.getItem(`trunkline.${name}`) ?? null; } catch { return null; } }
  #write(name, id) {
    this.chosen[name] = id;
    try {
      if (id === null) this.seams.storage?.removeItem(`trunkline.${name}`); else this.seams.storage?.setItem(`trunkline.${name}`, id);
    } catch { /* not kept */ }
  }

  async open(id = this.chosen.microphone) {
    const { mediaDevices } = this.seams;
    if (this.given) return this.given(id);
    if (!mediaDevices?.getUserMedia) throw new PhoneError("microphoneInsecure");
    const audio = { ...PROCESSING, ...(id && { deviceId: { exact: id } }) };
    try {
      return await mediaDevices.getUserMedia({ audio });
    } catch (error) {
      // the one chosen was unplugged: any other
      if (!id || error.name !== "OverconstrainedError") throw error;
      return mediaDevices.getUserMedia({ audio: PROCESSING });
    }
  }

  async ask() {
    try {
      for (const track of (await this.open()).getTracks()) track.stop();
      this.#set(null);
    } catch (error) {
      this.#set(microphoneError(error));
    }
    await this.check();
    return this.fault;
  }

  failed(fault) { if (fault?.code?.startsWith("microphone")) this.#set(fault); }

  #set(fault) {
    if (this.fault?.code === fault?.code) return;
    this.fault = fault;
    this.phone.emit("devices");
  }

  async #query() {
    if (this.#permission) return this.#permission;
    const permission = await this.seams.permissions?.query({ name: "microphone" }).catch(() => null);
    if (permission && !this.#permission && !this.isClosed) {
      this.#permission = permission;
      if (permission.addEventListener) this.#stops.push(this.seams.listen(permission, "change", () => this.check(true)));
    }
    return this.#permission;
  }

  async isDenied() { return (await this.#query())?.state === "denied"; }

  /** What is known without asking the user; with `isNews` calls without a microphone try again. */
  async check(isNews = false) {
    if (this.given) return;
    if (!this.seams.mediaDevices) return this.#set(new PhoneError("microphoneInsecure"));
    const permission = await this.#query();
    const list = await this.seams.mediaDevices.enumerateDevices().catch(() => null);
    if (this.isClosed) return;
    this.mayAsk = permission?.state === "prompt";
    const isAbsent = list && !list.some((device) => device.kind === "audioinput");
    const code = isAbsent ? "microphoneAbsent" : permission?.state === "denied" ? "microphoneDenied" : null;
    this.#set(code && new PhoneError(code));
    this.phone.emit("devices");
    if (isNews && !code) for (const call of this.phone.calls) if (call.microphoneFault) call.openMicrophone().catch(() => {});
  }

  async list(kind) {
    const list = (await this.seams.mediaDevices?.enumerateDevices().catch(() => null)) ?? [];
    return list.filter((device) => device.kind === kind);
  }

  async useMicrophone(id) {
    const last = this.chosen.microphone;
    this.#write("microphone", id);
    try {
      const open = this.phone.calls.filter((call) => call.localStream);
      for (const call of open) await call.openMicrophone();
    } catch (error) {
      this.#write("microphone", last);
      throw error;
    }
    this.phone.emit("devices");
  }

  async useLoudspeaker(id) {
    const live = this.phone.calls.filter((call) => !call.isOver);
    for (const call of live) await call.media.useLoudspeaker(id);
    this.#write("loudspeaker", id);
    this.phone.emit("devices");
  }

  close() {
    this.isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
  }
}
