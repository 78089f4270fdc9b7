import Foundation
import Testing

/// The clients that answer a call behind a home router: the SDK, foreign stacks, and browsers with the web phone or a bare page.
/// Each plays `tone.wav` and records `app-heard.wav`.
enum NetworkedClient: String, CaseIterable {
  case sdk, aiortc, pion, gstreamer, chromiumPage, chromiumPhone, firefoxPage, firefoxPhone

  /// Restarts ICE when its path is dead: the SDK, and trunkline.js in any browser.
  var restarts: Bool {
    switch self {
    case .aiortc, .pion, .gstreamer: false
    case .sdk, .chromiumPage, .chromiumPhone, .firefoxPage, .firefoxPhone: true
    }
  }

  /// The event with which its recording begins.
  private var recordingEvent: String {
    switch self {
    case .sdk: "firstAudio"
    case .aiortc, .pion, .gstreamer: "first_frame"
    case .chromiumPage, .chromiumPhone, .firefoxPage, .firefoxPhone: "record"
    }
  }

  /// When its recording began, in seconds since 1970, once it receives the call's audio.
  func recordingStart(_ client: Spawned) async throws -> Double {
    switch self {
    case .sdk: break
    case .aiortc, .pion, .gstreamer: _ = try await client.event("first_sound", within: 20)
    case .chromiumPage, .chromiumPhone, .firefoxPage, .firefoxPhone:
      _ = try await client.event("state", within: 30) { $0["state"] as? String == "connected" }
    }
    let at = try await client.event(recordingEvent, within: 20)["at"]
    return try #require(at as? Double) / 1_000
  }

  /// Starts the client; returns when it is online.
  func start(_ gateway: GatewayUnderTest, in network: HomeNetwork, _ more: [String] = []) async throws -> Spawned {
    let audio = ["--play", "tone.wav", "--record", "app-heard.wav"] + more
    let peers = Surroundings.sources + "/peers/"
    let python = Surroundings.python ?? "python3"
    switch self {
    case .sdk: return try await network.phone(gateway, at: HomeNetwork.address, ["--answer", "--calls", "1"] + audio)
    case .aiortc:
      return try await app(
        gateway, network, python, ["-B", peers + "app_phone.py", "--host", HomeNetwork.inside, "--media-clock"] + audio)
    case .pion:
      try await Pion.build(gateway)
      return try await app(gateway, network, gateway.folder + "/pion_phone", ["--address", HomeNetwork.inside] + audio)
    case .gstreamer: return try await app(gateway, network, GStreamer.python, ["-B", peers + "gst_phone.py"] + audio)
    case .chromiumPage: return try await browser(gateway, network, "browser_phone.py", ["--loop", "--bare"] + audio)
    case .chromiumPhone: return try await browser(gateway, network, "browser_phone.py", ["--loop"] + audio)
    case .firefoxPage: return try await browser(gateway, network, "firefox_phone.py", ["--bare"] + audio)
    case .firefoxPhone: return try await browser(gateway, network, "firefox_phone.py", audio)
    }
  }

  private func app(_ gateway: GatewayUnderTest, _ network: HomeNetwork, _ program: String, _ arguments: [String]) async throws
    -> Spawned
  {
    let token = try await gateway.token("alice", rawValue)
    let app = try network.spawn(
      rawValue, program,
      arguments + [
        "--url", "wss://\(HomeNetwork.address):\(gateway.app)/v1/connect", "--token", token, "--device", rawValue, "--insecure",
        "--answer-after", "0.2", "--calls", "1", "--seconds", "120",
      ], gateway)
    _ = try await app.event("welcome", within: 20)
    return app
  }

  private func browser(_ gateway: GatewayUnderTest, _ network: HomeNetwork, _ script: String, _ arguments: [String]) async throws
    -> Spawned
  {
    let token = try await gateway.token("alice", "web")
    let browser = try network.spawn(
      rawValue, Surroundings.python ?? "python3",
      [
        "-B", Surroundings.sources + "/peers/" + script, "--url", "https://\(HomeNetwork.address):\(gateway.app)/#token=\(token)",
        "--any-certificate", "--answer", "--seconds", "120",
      ] + arguments, gateway)
    _ = try await browser.event("line", within: 60) { $0["state"] as? String == "online" }
    return browser
  }
}

/// What happens to its network, without an event that reports it.
enum NetworkFault: String, CaseIterable {
  /// The NAT forgets its mapping and gives another port.
  case rebinding
  /// The router drops all for six seconds.
  case sixSeconds
  /// The router drops everything for good; cellular is available beside it.
  case dead

  /// How often each is tried for the table of docs/operate/nat.md.
  static let tries = ProcessInfo.processInfo.environment["TRUNKLINE_NETWORK_TRIES"].flatMap { Int($0) } ?? 0

  /// Seconds of silence that the network itself causes.
  var outage: Double { self == .sixSeconds ? 6 : 0 }

  func happen(to network: HomeNetwork) async throws {
    switch self {
    case .rebinding: try await network.rebind()
    case .sixSeconds:
      try await network.forward(false)
      try await Task.sleep(for: .seconds(6))  // the case itself
      try await network.forward(true)
    case .dead:
      try await network.connectOverCellular()
      try await network.forward(false)
    }
  }
}

/// A client's call during which a fault happens, and how long each side was then without the other's tone.
struct FaultedCall {
  var silence: [String: Double] = [:]
  var reason: String?
  var text = ""

  /// - Parameter seconds: from the fault to the carrier's BYE.
  init(_ client: NetworkedClient, _ fault: NetworkFault, seconds: Int) async throws {
    let network = HomeNetwork()
    defer { withExtendedLifetime(network) {} }
    network.hasCellular = fault == .dead
    try await network.make()
    let gateway = try await network.gateway(HomeNetwork.address)
    let length = seconds + 4
    try EndlessTone.write(length + 60, gateway.folder + "/tone.wav")
    let app = try await client.start(gateway, in: network)
    let trunk = try await Peers.trunk(
      gateway, ["--call", "+15551230001", "--talk", "\(length)", "--play", "tone.wav", "--record", "trunk-heard.wav"])
    let started = try await client.recordingStart(app)
    let answered = try #require(try await trunk.event("firstAudio", within: 20)["at"] as? Double) / 1_000
    // The fault happens in the middle of the tone, after what a browser makes up at a call's beginning.
    try await Task.sleep(for: .seconds(2))
    // Media takes the path of the fault: 50 packets a second each way.
    let before = try await network.homePackets()
    try await Task.sleep(for: .seconds(1))
    let passed = try await network.homePackets() - before
    #expect(passed >= 60, "\(client) does not send over the home router: \(passed) packets in a second")
    let now = Date().timeIntervalSince1970
    try await fault.happen(to: network)
    #expect(try await trunk.finish(within: Double(length) + 30) == 0, "\(trunk.text)\n\(app.text)")
    if client.restarts || fault != .dead { _ = try await app.finish(within: 20) }
    text = app.text
    reason = (try await gateway.records(1).first?["end"] as? [String: Any])?["reason"] as? String
    // a side that learns of the BYE late continues to record
    let bye = try #require(try await trunk.event("bye")["at"] as? Double) / 1_000
    for (side, start) in ["app": started, "trunk": answered] {
      let path = gateway.folder + "/\(side)-heard.wav"
      silence[side] = try EndlessTone.silence(path, from: now - start - 0.3, to: bye - start - 0.3) - fault.outage
    }
    try await gateway.finish()
  }
}

extension EndlessTone {
  /// The longest time without the tone between two moments, in seconds of the recording.
  static func silence(_ path: String, from start: Double, to end: Double) throws -> Double {
    let samples = try Speech.read(path).prefix(max(0, Int(end * 8_000))).dropFirst(max(0, Int(start * 8_000)))
    // what is missing at the end of the recording was not heard
    let missing = max(0, Int((end - max(0, start)) * 50) - samples.count / 160)
    var (longest, run) = (0, 0)
    for at in stride(from: samples.startIndex, to: samples.endIndex - 159, by: 160) {
      run = samples[at..<at + 160].contains { abs(Int($0)) > 800 } ? 0 : run + 1
      longest = max(longest, run)
    }
    return Double(max(longest, run + missing)) * 0.02
  }
}
