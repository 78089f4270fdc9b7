import Foundation
import SpeechScore
import Testing

/// Our own ends of a call, `trunkline-lab trunk` and `trunkline-lab phone`, and a browser on the web phone, each a separate
/// process.
extension Peers {
  /// A simulated carrier on the address that the gateway's trunk calls.
  static func trunk(_ gateway: GatewayUnderTest, _ arguments: [String]) async throws -> Spawned {
    let trunk = try Spawned(
      "trunk", Surroundings.lab,
      ["trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(gateway.carrier)", "--events"] + arguments,
      in: gateway.folder)
    _ = try await trunk.event("listening")
    return trunk
  }

  /// Our app client; returns when it is online.
  static func ownPhone(
    _ gateway: GatewayUnderTest, user: String = "alice", device: String = "own", through port: UInt16? = nil,
    _ arguments: [String]
  ) async throws -> Spawned {
    let token = try await gateway.token(user, device)
    let phone = try Spawned(
      "own-\(device)", Surroundings.lab,
      ["phone", "--url", "ws://127.0.0.1:\(port ?? gateway.app)/v1/connect", "--token", token, "--device", device, "--events"]
        + arguments, in: gateway.folder)
    _ = try await phone.event("online")
    return phone
  }

  /// Headless Chromium on the web phone that the gateway serves, logged in by link.
  /// `wake`: opened by a push instead of a login.
  static func browser(_ gateway: GatewayUnderTest, user: String = "alice", wake: String? = nil, _ arguments: [String])
    async throws
    -> Spawned
  {
    let proof = if let wake { "wake=\(wake)&device=web" } else { "token=\(try await gateway.token(user, "web"))" }
    let browser = try python(
      "browser", "browser_phone.py",
      ["--url", "http://127.0.0.1:\(gateway.app)/#\(proof)", "--seconds", "40"] + arguments, gateway)
    _ = try await browser.event("line", within: 30) { $0["state"] as? String == "online" }
    return browser
  }
}

extension Spawned {
  /// A field of an event of `trunkline-lab trunk` or `trunkline-lab phone`.
  func field(_ name: String, of event: String, within seconds: Double = 10) async throws -> String? {
    (try await self.event(event, within: seconds)["fields"] as? [String: String])?[name]
  }

  /// All values of a field, in the order of the events.
  func fields(_ name: String, of event: String) -> [String] {
    events.filter { $0["event"] as? String == event }.compactMap { ($0["fields"] as? [String: String])?[name] }
  }
}

extension Surroundings {
  static let chromium = program("chromium", "chromium-browser", "google-chrome")
  static let baresip = program("baresip")
  static let node = program("node", "nodejs")
  static let npm = program("npm")
  static let typeScript = program("tsc")
  static let esbuild = program("esbuild")
  static let linphone = program("linphonec")
  static let kamailio =
    program("kamailio") ?? (FileManager.default.isExecutableFile(atPath: "/usr/sbin/kamailio") ? "/usr/sbin/kamailio" : nil)

  /// The path of the first of these programs that is installed.
  static func program(_ names: String...) -> String? {
    for name in names {
      let paths = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { "\($0)/\(name)" }
      if let path = paths.first(where: FileManager.default.isExecutableFile) { return path }
    }
    return nil
  }
}

extension Speech {
  /// What is wrong with the recording of `said`; empty if nothing is.
  static func faults(
    _ what: String, said: [Int16], heardIn path: String, clippedAtMost: Int = 20, delayWithin: ClosedRange<Double> = -2_000...400
  ) throws -> [String] {
    guard let comparison = SpeechComparison(played: said, heard: try read(path)) else { return ["\(what): nothing to compare"] }
    let isGood = comparison.heardSpeech && comparison.clippedStartMilliseconds <= clippedAtMost
    return isGood && delayWithin.contains(comparison.delayMilliseconds) ? [] : ["\(what): \(comparison)"]
  }

  /// Root mean square between two times of a recording at 8 kHz, in sample steps; 0 outside of it.
  static func level(_ samples: [Int16], from: Double, to: Double) -> Double {
    let part = samples[min(samples.count, Int(from * 8_000))..<min(samples.count, Int(to * 8_000))]
    guard !part.isEmpty else { return 0 }
    return (part.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(part.count)).squareRoot()
  }
}
