import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineCallKit
@testable import TrunklineClient

/// The trace that the SDK makes on a device, made on the stand-in: the same lines, and no personal data.
@Suite struct DeviceTraceTests {
  /// No gateway is reached.
  private struct NoSockets: SocketConnector {
    struct Dead: Socket {
      func send(_ bytes: [UInt8]) {}
      func close(_ code: UInt16) {}
    }
    func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket { Dead() }
    func post(_ url: String, bearer: String, body: [UInt8]) {}
  }
  /// A keychain before the first unlock.
  private struct ClosedSecrets: SecretStore {
    func read(_ key: String) -> [UInt8]? { nil }
    func write(_ key: String, _ value: [UInt8]?) -> Bool { false }
  }
  private final class Held: Sendable {
    let engine = Mutex<PhoneEngine?>(nil)
    var trace: [String] { engine.withLock { $0 }?.trace.text ?? [] }
  }

  private static let call = "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11"
  private static let other = "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f22"

  private func phone(_ secrets: any SecretStore = MemorySecrets(), file: String? = nil) -> (StandInPhone, Held) {
    let (phone, held) = (StandInPhone(.strict, clock: .virtual), Held())
    phone.install {
      let parts = PhoneParts(
        gateway: "wss://g/v1/connect", configuration: .init(device: Hello.Device(id: "cell")), system: CallKitSystem(),
        audio: NoAudio(), sockets: NoSockets(), secrets: secrets, token: { "a.b.c" })
      let engine = PhoneEngine(parts, updates: PhoneUpdates {})
      engine.start()
      if let file { engine.enqueue { $0.keepTrace(at: file) } }
      held.engine.withLock { $0 = engine }
      return engine
    }
    return (phone, held)
  }

  private func push(_ phone: StandInPhone, _ call: String = call) {
    phone.push([
      "aps": [:] as [String: Any], "call": call, "wake": "secret-wake", "gw": "wss://g/v1/connect",
      "from": ["k": "phone", "h": "+15550001", "n": "Jane Doe"],
    ])
    phone.advance(.milliseconds(50))
  }

  // little virtual time: the rest of an action's time is measured against the real date

  /// Two calls that ring and are declined, a route, a cellular call, a crash.
  private func play(_ phone: StandInPhone) {
    push(phone)
    phone.tap(.decline)
    phone.advance(.milliseconds(50))
    phone.foreground()
    phone.advance(.milliseconds(50))
    phone.route(.bluetooth)
    phone.advance(.milliseconds(120))
    push(phone, Self.other)
    push(phone, Self.other)
    phone.cellularCall(true)
    phone.cellularCall(false)
    phone.crash(.callServices)
    phone.advance(.milliseconds(50))
  }

  /// The lines without times, the other party of a call, and counters that differ between the sides.
  private func comparable(_ lines: [String], _ events: Set<String>) -> [String] {
    lines.compactMap { line in
      let words = line.split(separator: " ").map(String.init)
      guard words.count > 2, events.contains("\(words[1]) \(words[2])") else { return nil }
      let fields = words.dropFirst(3).filter { !["handle", "kind", "name", "timeout"].contains($0.prefix { $0 != "=" }) }
      return (words[1...2] + fields.filter { !$0.hasPrefix("Doe") }).joined(separator: " ")
    }
  }

  @Test func `what both see is the same line in the stand-in's log and in the SDK's trace, in the same order`() {
    let (phone, held) = phone()
    play(phone)
    let trace = held.trace
    // the order of the app's reports, and of the system's events: the log is the phone's, which receives and sends at other
    // moments
    for events: Set<String> in [
      ["app report", "app ended", "app fulfill", "app fail", "app pushHandled"],
      ["system deliver", "system reported", "system didBegin", "system perform", "system didReset", "user foreground"],
      ["system route"],
    ] {
      let (ours, theirs) = (comparable(trace, events), comparable(phone.log, events))
      #expect(ours == theirs && ours.count >= 2, "\(ours)\n\(theirs)")
    }
    #expect(trace.contains { $0.contains("system interrupted on=true") } && phone.violations == [])
    #expect(trace.contains { $0.contains("perform action=1 do=end") && $0.contains("timeout=") })
  }

  @Test func `the trace contradicts no rule, and names no person`() {
    let (phone, held) = phone()
    play(phone)
    let lines = held.trace
    let text = lines.map { $0 + "\n" }.joined()
    let verdict = TraceCheck.judge(Array(text.utf8))
    #expect(verdict.exitCode == 0, "\(verdict.text(name: "trace"))\n\(text)")
    #expect(Set(verdict.confirmed).isSuperset(of: [.r1, .r6, .r12, .r18, .r28]), "\(verdict.text(name: "trace"))")
    for word in ["5550001", "Jane", "secret", "a.b.c"] { #expect(!text.contains(word)) }
    #expect(text.contains("handle=#1 kind=phone") && !text.contains("handle=#2"))
    #expect(verdict.headers.first?.system == "CallKitSystem" && verdict.headers.first?.lines == lines.count - 1)
  }

  @Test func `a kept trace survives the process: the next one continues in the file, and both are judged`() throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("trace-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: file) }
    let (phone, _) = phone(file: file)
    push(phone)
    phone.kill()
    push(phone, Self.other)
    phone.tap(.decline)
    phone.advance(.milliseconds(50))
    let bytes = [UInt8](try #require(FileManager.default.contents(atPath: file)))
    let verdict = TraceCheck.judge(bytes)
    #expect(verdict.headers.count == 2 && verdict.exitCode == 0 && verdict.problem == nil, "\(verdict.text(name: "trace"))")
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.contains(Self.call) && text.contains(Self.other) && text.contains("app keychain open=true"))
  }

  @Test func `R29: a closed keychain is in the trace; a file that cannot be opened yet gets its lines later`() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trace-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let (phone, held) = phone(ClosedSecrets(), file: folder.path + "/phone.trace")
    push(phone)
    #expect(held.trace.contains { $0.contains("app keychain open=false") })
    #expect(TraceCheck.judge(Array(held.trace.joined(separator: "\n").utf8)).confirmed.contains(.r29))
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    phone.tap(.decline)
    phone.advance(.milliseconds(50))
    let text = String(decoding: try Data(contentsOf: folder.appendingPathComponent("phone.trace")), as: UTF8.self)
    #expect(text.hasPrefix("0.000 app trace version=1 by=TrunklineClient") && text.contains("system deliver id=1"))
    // in the foreground the phone is unlocked, and a keychain that is still closed is not R29's
    phone.foreground()
    phone.advance(.milliseconds(50))
    #expect(TraceCheck.judge(Array(held.trace.joined(separator: "\n").utf8)).contradicted == [.r29])
  }

  @Test func `R17: a tap in Recents is in the trace, by the kind of its handle`() {
    let trace = PhoneTrace(system: "CallKitSystem", groups: 2)
    trace.startCall(.email, .zero)
    #expect(trace.text.last == "0.000 system startCall kind=email")
  }

  @Test func `what is too much is dropped from the front, and the header says how many`() {
    let trace = PhoneTrace(system: "CallKitSystem", groups: 2)
    for number in 0..<(PhoneTrace.limit + 1) { trace.note(.foreground(number % 2 == 0), .zero + .seconds(number)) }
    #expect(trace.text.first?.contains("dropped=125 lines=376") == true && trace.text[1].hasPrefix("125.000 "))
    #expect(TraceCheck.judge(Array(trace.text.joined(separator: "\n").utf8)).exitCode == 0)
  }

  @Test func `R18: what the system calls on another queue is marked`() {
    let trace = PhoneTrace(system: "CallKitSystem", groups: 2)
    trace.note(.began, .zero)
    trace.note(.audioDeactivated, .zero, isFromOtherQueue: true)
    #expect(trace.text.last == "0.000 system didDeactivate queue=other")
    #expect(TraceCheck.judge(Array(trace.text.joined(separator: "\n").utf8)).contradicted.contains(.r18))
  }
}
