import Foundation
import SpeechScore
import Testing

/// The real peers of a test, each a separate process.
enum Peers {
  /// An aiortc client of `trunkline.v1`. `script`: another one that accepts the arguments of `app_phone.py`.
  static func phone(
    _ gateway: GatewayUnderTest, user: String = "alice", device: String = "d1", accounts: [String] = [], seconds: Int = 60,
    through port: UInt16? = nil, token given: String? = nil, script: String = "app_phone.py", _ more: [String] = []
  )
    async throws -> Spawned
  {
    let own = given == nil ? try await gateway.token(user, device, accounts: accounts) : nil
    let token = given ?? own ?? ""
    let phone = try python(
      "phone-\(device)", script,
      [
        "--url", "ws://127.0.0.1:\(port ?? gateway.app)/v1/connect", "--token", token, "--device", device, "--host", "127.0.0.1",
        "--seconds",
        "\(seconds)",
      ] + more, gateway)
    _ = try await phone.event("welcome", within: 15)
    return phone
  }

  /// The audio of a carrier whose signalling is sipp's. Returns the port for `-key audio_port`.
  static func trunkAudio(_ gateway: GatewayUnderTest, _ more: [String] = []) async throws -> (peer: Spawned, port: UInt16) {
    let port = try FreePorts.row(2)
    let peer = try python("audio-\(port)", "trunk_audio.py", ["--port", "\(port)"] + more, gateway)
    _ = try await peer.event("listening", within: 15)
    return (peer, port)
  }

  /// The audio of a carrier that sends these streams, with its own row of ports.
  static func stranger(_ gateway: GatewayUnderTest, _ streams: String, _ more: [String] = []) async throws -> (
    peer: Spawned, port: UInt16
  ) {
    let port = try FreePorts.row(2)
    let peer = try python(
      "stranger-\(port)", "rtp_stranger.py", ["--port", "\(port)", "--streams", streams, "--silence", "0.7"] + more, gateway)
    _ = try await peer.event("listening", within: 15)
    return (peer, port)
  }

  /// A UDP path toward the gateway's SIP port that loses packets.
  static func lossyPath(_ gateway: GatewayUnderTest, loss: Double, seed: Int) async throws -> (peer: Spawned, port: UInt16) {
    let port = try FreePorts.udp()
    let peer = try python(
      "path", "lossy_udp.py",
      ["--listen", "\(port)", "--to", "127.0.0.1:\(gateway.sip)", "--loss", "\(loss)", "--seed", "\(seed)"], gateway)
    _ = try await peer.event("listening", within: 15)
    return (peer, port)
  }

  /// - Parameter office: the network that it runs in; nil: the test's own.
  static func python(
    _ name: String, _ script: String, _ arguments: [String], in office: OfficeNetwork? = nil, _ gateway: GatewayUnderTest
  ) throws -> Spawned {
    guard let python = Surroundings.python else { throw Spawned.Failure(description: Surroundings.missing ?? "") }
    let words = ["-B", Surroundings.sources + "/peers/" + script] + arguments
    let environment = ["PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"]
    guard let office else { return try Spawned(name, python, words, in: gateway.folder, environment: environment) }
    return try Spawned(
      name, "/sbin/ip", ["netns", "exec", office.inside, python] + words, in: gateway.folder,
      environment: environment.merging(["SSL_CERT_FILE": gateway.folder + "/turn.pem"]) { $1 })
  }

  /// sipp with one of our scenarios, or the file of a `SippScript`, calling `number` through the gateway; one call unless `more`
  /// says otherwise.
  static func caller(
    _ gateway: GatewayUnderTest, _ scenario: String, to number: String = "+15551230001", audio: UInt16 = 9,
    toward port: UInt16? = nil,
    _ more: [String] = []
  ) throws -> Spawned {
    let caller = try sipp(
      gateway, scenario,
      ["127.0.0.1:\(port ?? gateway.sip)", "-s", number, "-p", "\(try FreePorts.udp())", "-key", "audio_port", "\(audio)"] + more)
    let count = more.firstIndex(of: "-m").flatMap { more.indices.contains($0 + 1) ? Int(more[$0 + 1]) : nil }
    gateway.note(invites: caller.callIDs(count ?? 1))
    return caller
  }

  /// sipp as the carrier that the gateway calls.
  static func callee(
    _ gateway: GatewayUnderTest, _ scenario: String, audio: UInt16 = 9, host: String = "127.0.0.1", port: UInt16? = nil,
    _ more: [String] = []
  ) async throws -> Spawned {
    let port = port ?? gateway.carrier
    let peer = try sipp(gateway, scenario, host: host, ["-p", "\(port)", "-key", "audio_port", "\(audio)"] + more)
    guard await eventually(within: 5, { FreePorts.isTaken(port) }) else {
      throw Spawned.Failure(description: "sipp does not listen on \(port): \(peer.text.suffix(500))")
    }
    return peer
  }

  /// A login token with these claims, signed by a backend that has none of our code.
  static func signed(_ gateway: GatewayUnderTest, _ claims: String) async throws -> String {
    let signer = try python("signer", "sign_token.py", [gateway.folder + "/jwt.key", claims], gateway)
    guard try await signer.finish(within: 10) == 0 else { throw Spawned.Failure(description: signer.text) }
    return signer.text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  static func sipp(
    _ gateway: GatewayUnderTest, _ scenario: String, host: String = "127.0.0.1", _ arguments: [String]
  ) throws -> Spawned {
    guard let sipp = Surroundings.sipp else { throw Spawned.Failure(description: Surroundings.missing ?? "") }
    let media = try FreePorts.row(4)
    let file = scenario.hasPrefix("/") ? scenario : Surroundings.sources + "/sipp/\(scenario).xml"
    let name = URL(fileURLWithPath: file).deletingPathExtension().lastPathComponent
    let spawned = try Spawned(
      "sipp-\(name)", sipp,
      [
        "-sf", file, "-i", host, "-mi", host, "-mp", "\(media)",
        "-nostdin",
        "-trace_err", "-error_file", gateway.folder + "/sipp-errors.log", "-timeout_error",
      ] + (arguments.contains("-m") ? [] : ["-m", "1"]) + (arguments.contains("-timeout") ? [] : ["-timeout", "60s"]) + arguments,
      in: gateway.folder, environment: ["TERM": "dumb"])
    if let option = arguments.firstIndex(of: "-p"), let port = UInt16(arguments[option + 1]) { awaitBound(port, by: spawned) }
    return spawned
  }

  /// Waits until the peer has bound its port, so that no call is sent before: at most 5 s, or until the peer has ended.
  private static func awaitBound(_ port: UInt16, by peer: Spawned) {
    let suffix = ":" + String(port, radix: 16, uppercase: true).leftPadded(4)
    let deadline = Deadline(in: 5)
    while peer.isRunning, !deadline.isOver {
      for table in ["udp", "udp6", "tcp", "tcp6"] {
        let rows = (try? String(contentsOfFile: "/proc/self/net/\(table)", encoding: .utf8)) ?? ""
        for row in rows.split(separator: "\n").dropFirst() {
          if row.split(separator: " ").dropFirst().first?.hasSuffix(suffix) == true { return }
        }
      }
      usleep(5_000)
    }
  }
}

extension String {
  fileprivate func leftPadded(_ count: Int) -> String { String(repeating: "0", count: max(0, count - utf8.count)) + self }
}
