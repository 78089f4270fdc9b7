import Foundation
import Synchronization
import Testing

/// A page in headless Chromium, driven by DevTools commands: the browser counts its mouse and keys as a person's.
final class WebPage {
  private let browser: Spawned
  private let folder: String
  private let lastID = Mutex(0)
  /// The folder for screenshots; without it none are made.
  private static let shots = ProcessInfo.processInfo.environment["TRUNKLINE_SCREENSHOTS"]

  /// Notifications and vibration as `window.shown` and `window.vibrations`: headless Chromium has neither. The page has no focus.
  private static let hook = """
    window.shown = []; window.vibrations = []; window.asked = 0;
    window.Notification = class { static permission = sessionStorage.getItem("notify") ?? "default";
      static async requestPermission() { asked++; sessionStorage.setItem("notify", "granted"); return this.permission = "granted"; }
      constructor(title) { shown.push(title); } close() { shown.push("closed"); } };
    navigator.vibrate = (pattern) => { vibrations.push(pattern); return true; };
    document.hasFocus = () => false;
    """

  init(_ gateway: GatewayUnderTest, _ arguments: [String] = [], width: Int = 480, isDark: Bool = false) async throws {
    folder = gateway.folder
    browser = try Peers.python("page", "web_page.py", arguments, gateway)
    _ = try await browser.event("ready", within: 30)
    try await send("Page.enable")
    try await send("Page.addScriptToEvaluateOnNewDocument", ["source": Self.hook])
    try await look(width: width, isDark: isDark)
  }

  /// Sets the size and colours of the screen.
  func look(width: Int, height: Int = 860, isDark: Bool = false) async throws {
    let size: [String: Any] = ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false]
    try await send("Emulation.setDeviceMetricsOverride", size)
    let colours = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
    try await send("Emulation.setEmulatedMedia", ["features": [colours]])
  }

  /// Runs a script before those of every page from now on.
  func hook(_ script: String) async throws {
    try await send("Page.addScriptToEvaluateOnNewDocument", ["source": script])
  }

  /// The id of the focused element.
  func focus() async throws -> String { try await evaluate("document.activeElement.id") as? String ?? "" }

  /// Chooses another entry of a list, as a person does.
  func choose(_ index: Int, in id: String) async throws {
    try await wait("document.getElementById('\(id)').options.length > \(index)")
    try await evaluate(
      "{ const list = document.getElementById('\(id)'); list.selectedIndex = \(index); list.dispatchEvent(new Event('change')); }"
    )
  }

  /// Opens the page; with a token it logs in by link.
  func open(_ gateway: GatewayUnderTest, token: String? = nil) async throws {
    try await send("Page.navigate", ["url": "http://127.0.0.1:\(gateway.app)/" + (token.map { "#token=" + $0 } ?? "")])
    try await wait("document.readyState === 'complete' && document.getElementById('status').textContent !== ''")
    if token != nil { try await wait("window.trunkline?.state === 'online'") }
  }

  /// Sends a DevTools command; returns its answer.
  @discardableResult func send(_ method: String, _ parameters: [String: Any] = [:]) async throws -> [String: Any] {
    try await post(["method": method, "params": parameters])
  }

  /// Sends a command without waiting for its answer, which a dialog may hold back.
  func start(_ method: String, _ parameters: [String: Any] = [:]) throws {
    _ = try write(["method": method, "params": parameters])
  }

  private func post(_ command: [String: Any]) async throws -> [String: Any] {
    let id = try write(command)
    let answer = try await browser.event("answer", within: 25) { $0["id"] as? Int == id }
    if let error = answer["error"] { throw Spawned.Failure(description: "\(command): \(error)") }
    return answer["result"] as? [String: Any] ?? [:]
  }

  private func write(_ command: [String: Any]) throws -> Int {
    let id = lastID.withLock { id in
      id += 1
      return id
    }
    let line = try JSONSerialization.data(withJSONObject: command.merging(["id": id]) { $1 })
    browser.type(String(decoding: line, as: UTF8.self))
    return id
  }

  @discardableResult func evaluate(_ script: String) async throws -> Any? {
    let options: [String: Any] = ["expression": script, "returnByValue": true, "awaitPromise": true]
    let result = try await send("Runtime.evaluate", options)
    if let thrown = result["exceptionDetails"] { throw Spawned.Failure(description: "\(script): \(thrown)") }
    return (result["result"] as? [String: Any])?["value"]
  }

  func text(_ id: String) async throws -> String {
    try await evaluate("document.getElementById('\(id)').textContent") as? String ?? ""
  }

  func isShown(_ id: String) async throws -> Bool {
    try await evaluate("document.getElementById('\(id)').checkVisibility()") as? Bool ?? false
  }

  /// Waits until the condition is true in the page; throws with what the page shows instead.
  func wait(_ condition: String, within seconds: Int = 12) async throws {
    // a second at a time, so that the wait follows the canary's time
    let script = """
      new Promise((done) => { const end = performance.now() + \(min(seconds, 1) * 1000); const look = setInterval(() => {
        let holds = false; try { holds = !!(\(condition)); } catch {}
        if (holds || performance.now() > end) { clearInterval(look); done(holds || document.body.innerText); } }, 20); })
      """
    let deadline = Deadline(in: Double(seconds))
    while true {
      let isLast = deadline.isOver
      do {
        let found = try await evaluate(script)
        if found as? Bool == true { return }
        guard isLast else { continue }
        throw Spawned.Failure(description: "not \(condition) within \(seconds) s; the page:\n\(found ?? "")")
      } catch let failure as Spawned.Failure where failure.description.contains("navigated or closed") && !isLast {
        // the page that was asked has navigated: the next one answers
      }
    }
  }

  /// `+15557770001` as the web phone shows it.
  static func shown(_ number: String) -> String {
    let digits = number.dropFirst(2)
    return "+1 \(digits.prefix(3)) \(digits.dropFirst(3).prefix(3)) \(digits.dropFirst(6))"
  }

  func waitFor(_ words: String, in id: String, within seconds: Int = 12) async throws {
    try await wait("document.getElementById('\(id)').textContent.includes(\"\(words)\")", within: seconds)
  }

  func click(_ id: String) async throws {
    try await wait("document.getElementById('\(id)').checkVisibility()")
    let script = """
      (() => { const at = document.getElementById('\(id)'); at.scrollIntoView({ block: "center" });
        const box = at.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()
      """
    let point = try #require(try await evaluate(script) as? [Double])
    for type in ["mousePressed", "mouseReleased"] {
      try await send("Input.dispatchMouseEvent", ["type": type, "x": point[0], "y": point[1], "button": "left", "clickCount": 1])
    }
  }

  /// Types letters, or one named key.
  func press(_ keys: String) async throws {
    let named = ["Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27)]
    for key in named[keys] != nil ? [keys] : keys.map(String.init) {
      let (text, code) = named[key] ?? (key, 0)
      let down: [String: Any] = [
        "type": text.isEmpty ? "rawKeyDown" : "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": code,
      ]
      try await send("Input.dispatchKeyEvent", down)
      try await send("Input.dispatchKeyEvent", ["type": "keyUp", "key": key, "windowsVirtualKeyCode": code])
    }
  }

  func dialog(_ number: Int, accept: Bool) async throws {
    let came = await eventually(within: 10) { [browser] in
      browser.events.filter { $0["event"] as? String == "dialog" && $0["type"] as? String == "beforeunload" }.count == number
    }
    #expect(came, "the page asks before it goes: \(browser.text.suffix(500))")
    try await send("Page.handleJavaScriptDialog", ["accept": accept])
  }

  /// Keeps a screenshot for people.
  func shot(_ name: String) async throws {
    guard let shots = Self.shots else { return }
    _ = try await post(["shot": "\(shots)/\(name).png"])
  }

  /// What is wrong with the looks of the page, by peers/page_faults.js.
  func faults() async throws -> [String] {
    let script = try String(contentsOfFile: Surroundings.sources + "/peers/page_faults.js", encoding: .utf8)
    return try await evaluate(script) as? [String] ?? ["no answer"]
  }

  func close() async throws {
    browser.closeInput()
    #expect(try await browser.finish(within: 20) == 0, "\(browser.text.suffix(1_000))")
  }
}
