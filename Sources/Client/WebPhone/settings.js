// The dialog behind the header's button: devices, who may disturb, and the login.
import { t } from "./language.js";
import { $, app, device, show } from "./page.js";
import { endProbes, ringerWords, showLevel, showRinger, testAgain, wireProbes } from "./probes.js";
import { areOn, switchShortcuts } from "./shortcuts.js";
import { canInstall, canPush, enablePush, install, isPushOn } from "./push.js";
import { errorWords } from "./words.js";

let fault = "", isBusy = false;

export function wireSettings({ logOut, stay, isStaying }) {
  for (const opener of ["open-settings", "audio"]) $(opener).onclick = () => open(isStaying);
  $("close-settings").onclick = () => closeSettings();
  $("shortcuts").onchange = (event) => switchShortcuts(event.target.checked);
  $("microphone").onchange = (event) => choose(app.phone.useMicrophone(event.target.value || null).then(testAgain));
  $("loudspeaker").onchange = (event) => choose(app.phone.useLoudspeaker(event.target.value || null));
  wireProbes((error) => {
    fault = error ? errorWords(error) || t("settings.unusable") : "";
    showSettings();
  });
  $("dnd").onchange = (event) => disturb(!event.target.checked);
  $("push").onchange = (event) => push(event.target.checked);
  $("stay-on").onchange = (event) => stay(event.target.checked);
  $("install").onclick = () => install();
  $("log-out").onclick = () => { closeSettings(); logOut(); };
}

/** Whose click has opened it. */
let opener = null;

/** True if it was open. */
export function closeSettings() {
  if (!$("settings").open) return false;
  const hadKeyboard = $("settings").contains(document.activeElement);
  $("settings").close();
  endProbes();
  app.render();
  if (hadKeyboard && opener?.checkVisibility()) opener.focus();
  return true;
}

async function open(isStaying) {
  fault = "";
  opener = document.activeElement;
  $("shortcuts").checked = areOn();
  $("dnd").checked = app.phone.doNotDisturb;
  $("stay-on").checked = isStaying();
  // filled before it is seen: nothing moves under a finger
  await fill();
  if (!app.phone || $("settings").open) return;
  // beside the call and not over it: what hangs up stays within reach
  $("settings").show();
  showLevel();
  app.render();
  $("settings").scrollIntoView({ block: "nearest" });
}

/** While it is open: devices come and go. */
export async function showSettings() {
  if ($("settings").open && app.phone) await fill();
  showLevel();
}

async function fill() {
  const { phone } = app;
  const [microphones, loudspeakers, hasPush] = await Promise.all([phone.microphones(), phone.loudspeakers(), canPush() && isPushOn()]);
  if (phone !== app.phone) return;
  fillSelect("microphone", microphones, phone.microphone, "settings.microphoneNumber");
  fillSelect("loudspeaker", loudspeakers, phone.loudspeaker, "settings.loudspeakerNumber");
  // a browser that cannot choose lists none
  show("loudspeaker-field", loudspeakers.length > 0);
  show("push-field", canPush());
  if (!isBusy) $("push").checked = hasPush;
  $("push-words").textContent = phone.pushFault ? errorWords(phone.pushFault) : t("settings.pushHint");
  $("push-words").classList.toggle("fault", !!phone.pushFault);
  showRinger(loudspeakers, fillSelect);
  $("device-fault").textContent = fault || errorWords(phone.microphoneFault ?? phone.microphoneFallback ?? phone.loudspeakerFallback) || ringerWords(loudspeakers);
  show("install", canInstall());
}

/** Before the microphone was allowed once the names are empty. */
function fillSelect(id, devices, chosenID, unnamed) {
  // Chromium lists the system's choice as a device of its own
  const listed = devices.filter(({ deviceId }) => deviceId !== "default" && deviceId !== "communications" && deviceId !== "");
  const options = [["", t("settings.default")], ...listed.map((one, i) => [one.deviceId, one.label || t(unnamed, { number: i + 1 })])];
  const select = $(id);
  select.disabled = devices.length === 0;
  const shown = JSON.stringify(options);
  if (select.dataset.shown !== shown) {
    select.dataset.shown = shown;
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  }
  select.value = listed.some(({ deviceId }) => deviceId === chosenID) ? chosenID : "";
}

async function choose(done) {
  fault = await done.then(() => "", (error) => errorWords(error) || t("settings.unusable"));
  await showSettings();
}

function disturb(isAllowed) {
  app.phone.doNotDisturb = !isAllowed;
  if (isAllowed) device.remove("trunkline.dnd"); else device.set("trunkline.dnd", "on");
  app.render();
}

/** The gateway forgets it with the device's entry; this page does not. */
export function resumeDoNotDisturb() {
  if (device.get("trunkline.dnd") === "on") app.phone.doNotDisturb = true;
}

async function push(isOn) {
  isBusy = true;
  if (isOn) await enablePush(); else await app.phone.disablePush().catch(() => {});
  isBusy = false;
  await showSettings();
}
