import Foundation
import Peers
import Synchronization
import Testing
import TrunklineBytes
import TrunklineCallKit
import TrunklineClient

@testable import AppleStandIn

/// A telephone with the SDK's app in this process, whose microphone and loudspeaker are samples.
@MainActor final class TelephoneUnderTest {
  let iphone: StandInPhone
  let audio: FileAudio
  private let phone = Running()
  private let start: @Sendable () -> Any

  /// The app's phone in the current process. Weak: the process owns it.
  private final class Running: Sendable {
    private struct Box: @unchecked Sendable { weak var phone: Phone? }  // a weak reference is read and written whole
    private let box = Mutex(Box())
    var value: Phone? {
      get { box.withLock { $0.phone } }
      set { box.withLock { $0.phone = newValue } }
    }
  }

  /// - Parameters:
  ///   - microphone: repeated if it is not speech.
  ///   - token: what the app's backend returns; nil: one that stays valid for the test.
  init(
    _ gateway: GatewayUnderTest, _ rules: SystemRules = .strict, microphone: [Int16]? = nil,
    token given: (@Sendable () async throws -> String)? = nil
  ) async throws {
    iphone = StandInPhone(rules, clock: .real)
    audio = FileAudio(microphone ?? Speech.app, sampleRateHz: 8_000, repeats: microphone != nil)
    let (url, lasting) = ("ws://127.0.0.1:\(gateway.app)/v1/connect", try await gateway.token("alice", "cell"))
    let token = given ?? { lasting }
    let (phone, audio) = (phone, audio)
    let isMain = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: isMain, value: true)
    start = {
      let make: @MainActor () -> Phone = {
        var settings = CallKitSystem.Settings()
        settings.topic = "org.example.phone.voip"
        let made = Phone(
          url, device: "cell", system: CallKitSystem(settings), audio: audio, sockets: WebSockets(), isBackground: true,
          token: token)
        phone.value = made
        return made
      }
      // the system starts a process on its own thread
      if DispatchQueue.getSpecific(key: isMain) != nil { return MainActor.assumeIsolated(make) }
      return DispatchQueue.main.sync { MainActor.assumeIsolated(make) }
    }
  }

  /// Opens the app once: it logs in and registers its push token, which a gateway without `push` refuses.
  func register(isPushed: Bool = true) async throws {
    iphone.launch(start)
    let phone = try #require(phone.value)
    for await event in phone.events {
      guard case .registered(let refusal) = event else { continue }
      #expect(refusal == (isPushed ? nil : .badRequest))
      return
    }
  }

  /// The app's phone, while its process runs.
  var app: Phone? { phone.value }

  /// Resumes a call by the app's own button.
  func resume(_ call: Identifier) { app?.calls.first { $0.id == call.uuid }?.hold(false) }

  /// Merges two calls by the app's own buttons.
  func merge(_ call: Identifier, with other: Identifier) {
    guard let one = app?.calls.first(where: { $0.id == call.uuid }), let second = app?.calls.first(where: { $0.id == other.uuid })
    else { return }
    one.merge(with: second)
  }
  func leaveGroup(_ call: Identifier) { app?.calls.first { $0.id == call.uuid }?.leaveGroup() }

  /// The loudspeaker plays all of these at once, for so many seconds in all.
  nonisolated func hears(_ tones: Set<Tone>, for seconds: Double, within limit: Double = 10) async -> Bool {
    _ = audio.drainReceived()
    var (heard, found): ([Int16], Int) = ([], 0)
    let deadline = Deadline(in: limit)
    while !deadline.isOver {
      heard += audio.drainReceived().samples
      while heard.count >= 320 {
        if Tone.heard(in: Array(heard.prefix(320))) == tones { found += 1 }
        heard.removeFirst(320)
      }
      if Double(found) * 0.04 >= seconds { return true }
      try? await Task.sleep(for: .milliseconds(20))
    }
    return false
  }

  /// Receives the pushes to this telephone, at a push service's `apps` address.
  func pushes(at address: String) throws -> PushWaiter {
    try PushWaiter(.sandbox(try #require(SocketAddress(address)), token: pushToken()))
  }

  /// The loudspeaker plays this tone now, and nothing else.
  nonisolated func hears(_ tone: Tone, within seconds: Double = 5) async -> Bool {
    _ = audio.drainReceived()
    var heard: [Int16] = []
    let deadline = Deadline(in: seconds)
    while !deadline.isOver {
      heard += audio.drainReceived().samples
      if Tone.heard(in: heard) == [tone] { return true }
      try? await Task.sleep(for: .milliseconds(20))
    }
    return false
  }

  /// The screen shows a ringing call.
  nonisolated func rings(within seconds: Double = 5) async -> Bool {
    let iphone = iphone
    return await eventually(within: seconds) { iphone.screen.incoming != nil }
  }

  /// Nothing is on the screen.
  nonisolated func isIdle(within seconds: Double = 5) async -> Bool {
    let iphone = iphone
    return await eventually(within: seconds) { iphone.screen.incoming == nil && iphone.screen.calls.isEmpty }
  }

  private func pushToken() -> String {
    let token = iphone.access.withLock { iphone.model.token }
    return token.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// Steady sounds that tell callers apart, also after G.711 and Opus.
enum Tone: Double, CaseIterable {
  case low = 440, middle = 700, high = 1_100

  /// A tenth of full scale.
  func samples(seconds: Double) -> [Int16] {
    (0..<Int(8_000 * seconds)).map { Int16(3_000 * sin(Double($0) * 2 * .pi * rawValue / 8_000)) }
  }

  /// The tones in the last 40 ms; empty: near silence, or too few samples.
  static func heard(in samples: [Int16]) -> Set<Tone> {
    guard samples.count >= 320 else { return [] }
    return Set(allCases.filter { $0.level(Array(samples.suffix(320))) > 300 })
  }

  /// The seconds of a recording that contain this tone.
  func seconds(in samples: [Int16]) -> Double {
    let frames = stride(from: 0, to: samples.count - 320, by: 320).map { Array(samples[$0..<$0 + 320]) }
    return Double(frames.count { level($0) > 300 }) * 0.04
  }

  /// The amplitude at this frequency, by Goertzel's recurrence.
  private func level(_ samples: [Int16]) -> Double {
    let turn = 2 * .pi * rawValue / 8_000
    var (now, last) = (0.0, 0.0)
    for sample in samples { (now, last) = (Double(sample) + 2 * cos(turn) * now - last, now) }
    return (now * now + last * last - 2 * cos(turn) * now * last).squareRoot() * 2 / Double(samples.count)
  }
}

extension Peers {
  /// A carrier's caller of Alice that plays one tone and records what it hears in `NAME-heard.wav`.
  static func caller(
    _ gateway: GatewayUnderTest, says tone: Tone, name: String? = nil, _ more: [String] = ["--talk", "60"]
  ) throws -> Spawned {
    let name = name ?? "\(tone)"
    try Speech.write(tone.samples(seconds: 60), gateway.folder + "/\(name).wav")
    return try Spawned(
      name, Surroundings.lab,
      [
        "trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(try FreePorts.both())", "--events", "--call",
        "+15551230001", "--play", "\(name).wav", "--record", "\(name)-heard.wav",
      ] + more, in: gateway.folder)
  }
}

extension PushWaiter {
  /// The payload of the next push.
  func payload() async throws -> [String: Any] {
    let line = try #require(await Task.detached { self.next() }.value)
    let envelope = try #require(JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
    return try #require(envelope["payload"] as? [String: Any])
  }
}

/// How often the app's backend was asked, and whether it answers again.
final class Counter: Sendable {
  private let state = Mutex((count: 0, isOpen: false))
  func next() -> Int {
    state.withLock {
      $0.count += 1
      return $0.count
    }
  }
  func open() { state.withLock { $0.isOpen = true } }
  var isOpen: Bool { state.withLock { $0.isOpen } }
}

extension GatewayUnderTest {
  /// A login token whose `exp` is so many seconds from now.
  func shortToken(_ user: String, _ device: String, validFor seconds: Int) async throws -> String {
    let maker = """
      import base64, hashlib, hmac, json, sys, time
      text = lambda b: base64.urlsafe_b64encode(b).rstrip(b"=")
      claims = {"sub": sys.argv[2], "dev": sys.argv[3], "aud": "trunkline", "exp": int(time.time()) + int(sys.argv[4])}
      part = text(b'{"alg":"HS256","typ":"JWT"}') + b"." + text(json.dumps(claims).encode())
      key = open(sys.argv[1], "rb").read().strip()
      print((part + b"." + text(hmac.new(key, part, hashlib.sha256).digest())).decode())
      """
    let made = try Spawned(
      "short-token", "/usr/bin/env", ["python3", "-c", maker, folder + "/jwt.key", user, device, "\(seconds)"], in: folder)
    guard try await made.finish(within: 10) == 0 else { throw Spawned.Failure(description: made.text) }
    return made.text.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
