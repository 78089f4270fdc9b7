import Foundation
import Synchronization
import Testing

/// trunkline.js in headless Chromium, in a page of the gateway that has nothing but a script, with its service worker and
/// notifications as the browser keeps them.
final class BarePage {
  private let browser: Spawned
  private let lastID = Mutex(0)

  /// The page's globals: `phone`, the latest `call`, its `states` and the received audio.
  private static let script =
    PageRecorder.script + """
      (async () => { window.states = []; window.pcm = [];
        window.follow = (call) => { window.call = call; states.length = 0;
          (async () => { for await (const state of call.states) states.push(state); })();
          call.addEventListener("state", () => { if (call.isPlaying && !call.isTapped) { call.isTapped = true;
            recordStream(call.remoteStream, (samples) => pcm.push(...samples)); } });
          return call.id; };
        if (!window.phone) {
          const { Phone, readPush } = await import("/trunkline/trunkline.js");
          const token = TOKEN;
          window.phone = new Phone(`ws://${location.host}/v1/connect`, { ...(token && { token: () => token }), push: readPush(HASH), device: "web" });
        }
        phone.addEventListener("incoming", ({ call }) => follow(call));
        return 1; })()
      """

  /// `words`: what its microphone says over and over, at 8 kHz.
  init(_ gateway: GatewayUnderTest, says words: [Int16] = Speech.app) async throws {
    try Speech.write(words, gateway.folder + "/said.wav")
    browser = try Peers.python("bare-page", "worker_page.py", ["--play", "said.wav"], gateway)
    _ = try await browser.event("ready", within: 30)
  }

  /// `token` nil: a page that logs in with nothing but the push in `hash`.
  func open(_ gateway: GatewayUnderTest, token: String?, hash: String = "") async throws {
    try await open(gateway.app, token: token, hash: hash)
  }

  func open(_ port: UInt16, token: String?, hash: String = "") async throws {
    try await go("http://127.0.0.1:\(port)/trunkline/texts.js")
    let values = [token.map { "\"\($0)\"" } ?? "null", "\"\(hash)\""]
    let script = Self.script.replacing("TOKEN", with: values[0]).replacing("HASH", with: values[1])
    guard token != nil || !hash.isEmpty else { return }
    try await evaluate(script)
    try await wait("phone.state === 'online'")
  }

  /// Gain control and noise suppression change what the fake microphone says, and it is compared at the other end.
  private static let plainMicrophone = """
    { const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = () => open({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } }); } 1
    """

  /// An app's own page, which makes `window.phone` itself. What its microphone says arrives unprocessed.
  func open(app url: String) async throws {
    try await go(url)
    try await wait("window.phone")
    try await evaluate(Self.plainMicrophone)
    try await evaluate(Self.script.replacing("TOKEN", with: "null").replacing("HASH", with: "\"\""))
    try await wait("phone.state === 'online'")
  }

  func go(_ url: String) async throws { _ = try await ask(["open": url]) }
  func closePage() async throws { _ = try await ask(["close": true]) }

  @discardableResult func evaluate(_ script: String) async throws -> Any? { try await ask(["page": script]) }

  /// Waits until the condition holds in the page; throws with the call's states otherwise.
  func wait(_ condition: String, within seconds: Int = 12) async throws {
    let script = """
      new Promise((done) => { const end = performance.now() + \(seconds * 1000); const look = setInterval(() => {
        let holds = false; try { holds = !!(\(condition)); } catch {}
        if (holds || performance.now() > end) { clearInterval(look);
          done(holds || JSON.stringify([window.phone?.state, window.phone?.error?.message, window.states, window.call?.endReason, window.call?.error?.message])); } }, 20); })
      """
    let found = try await evaluate(script)
    guard found as? Bool == true else {
      throw Spawned.Failure(description: "not \(condition) within \(seconds) s: \(found ?? "")")
    }
  }

  /// Writes the received audio to a WAV file; returns its path.
  func heard(_ gateway: GatewayUnderTest) async throws -> String {
    let samples = try #require(try await evaluate("pcm") as? [Int])
    let path = gateway.folder + "/page-heard.wav"
    try Speech.write(samples.map { Int16(clamping: $0) }, path)
    return path
  }

  // MARK: pushes

  /// Waits until the worker is activated: DevTools loses a push that comes before.
  func registerWorker() async throws {
    try await evaluate(
      """
      navigator.serviceWorker.register("/service-worker.js").then(() => navigator.serviceWorker.ready).then(({ active }) =>
        active.state === "activated" || new Promise((done) => { active.onstatechange = () => active.state === "activated" && done(true); }))
      """)
  }

  func deliver(_ push: Any, _ gateway: GatewayUnderTest) async throws {
    _ = try await ask(["push": push, "origin": "http://127.0.0.1:\(gateway.app)"])
  }

  /// DevTools loses a push to a worker that is about to stop, as after its page was closed: the push is delivered again, four
  /// times at most, until these titles are shown.
  func deliver(_ push: Any, _ gateway: GatewayUnderTest, until titles: [String]) async throws {
    for _ in 0..<4 {
      try await deliver(push, gateway)
      let deadline = Deadline(in: 3)
      while !deadline.isOver {
        if try await notifications() == titles { return }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
    #expect(try await notifications() == titles)
  }

  /// Titles of the shown notifications.
  func notifications() async throws -> [String] {
    let script = "registration.getNotifications().then((all) => all.map((one) => one.title).sort())"
    return try await ask(["worker": script]) as? [String] ?? ["no answer"]
  }

  func waitForNotifications(_ titles: [String], within seconds: Double = 10) async throws {
    let deadline = Deadline(in: seconds)
    var seen = try await notifications()
    while seen != titles, !deadline.isOver {
      try await Task.sleep(for: .milliseconds(50))
      seen = try await notifications()
    }
    #expect(seen == titles)
  }

  /// Clicks a button of the notification; returns the page that the worker opens then. Headless browsers show no notification to
  /// click on: the worker gets the event that a click would cause.
  @discardableResult func click(_ action: String) async throws -> String? {
    let script = """
      (async () => { const [notification] = await registration.getNotifications(); let opened = null;
        const open = new Promise((done) => { clients.openWindow = async (url) => done(url); setTimeout(() => done(null), 1500); });
        dispatchEvent(new NotificationEvent("notificationclick", { notification, action: "\(action)" }));
        return \(action == "answer" ? "await open" : "null"); })()
      """
    return try await ask(["worker": script]) as? String
  }

  /// Makes requests fail as a browser does for a gateway of another origin that answers no preflight.
  func refuseHTTP() async throws {
    _ = try await ask(["worker": "self.fetch = async () => { throw new TypeError('Failed to fetch'); }; 1"])
  }

  private func ask(_ command: [String: Any]) async throws -> Any? {
    let id = lastID.withLock { id in
      id += 1
      return id
    }
    let line = try JSONSerialization.data(withJSONObject: command.merging(["id": id]) { $1 })
    browser.type(String(decoding: line, as: UTF8.self))
    let answer = try await browser.event("answer", within: 40) { $0["id"] as? Int == id }
    if let error = answer["error"] { throw Spawned.Failure(description: "\(command.keys.sorted()): \(error)") }
    return answer["value"]
  }

  func close() async throws {
    browser.closeInput()
    #expect(try await browser.finish(within: 20) == 0, "\(browser.text.suffix(1_000))")
  }
}
