import Foundation
import Synchronization
import Testing
import TrunklineCallKit

/// Runs the samples that state their output.
@Suite struct SampleRunTests {
  @Test func `the numbers of the Call Directory's samples are those of the comments beside them`() {
    #expect(DirectorySamples.numbers() == [15_550_009_999, 49_301_234_567, 442_079_460_018, nil])
    #expect(DirectorySamples.national() == 49_301_234_567)
  }

  /// No gateway: reporting a push must not wait for one.
  private struct NoGateway: SocketConnector, Socket {
    func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket { self }
    func post(_ url: String, bearer: String, body: [UInt8]) {}
    func send(_ text: [UInt8]) {}
    func close(_ code: UInt16) {}
  }

  @MainActor @Test func `a locked phone shows the pushed call of the stand-in's sample, and no rule is broken`() {
    let push =
      #"{"v":1,"t":"call","call":"7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a10","from":{"k":"phone","h":"+15550000001"},"wake":"w"}"#
    let violations = StandInSamples.pushed(push) {
      Phone(
        "ws://127.0.0.1:9/v1/connect", device: "cell", system: CallKitSystem(), audio: NoAudio(), sockets: NoGateway(),
        isBackground: true
      ) { try await Backend.phoneToken() }
    }
    #expect(violations == [])
  }

  /// The sample's LiveCommunicationKit side: records each request and fulfils it at once.
  private final class Screen: Conversations {
    struct Failure: Error {}
    let shown = Mutex<[String]>([])
    let refuses: Bool
    init(refuses: Bool = false) { self.refuses = refuses }
    func say(_ text: String) { shown.withLock { $0.append(text) } }
    func report(_ call: UUID, from name: String, _ reported: @escaping @Sendable ((any Error)?) -> Void) {
      say("report \(name)")
      reported(refuses ? Failure() : nil)
    }
    func ended(_ call: UUID) { say("ended") }
    func connected(_ call: UUID) { say("connected") }
    func perform(_ button: ConversationButton, _ call: UUID) { say("asked for \(button)") }
  }
  private struct Tap: ConversationAction {
    let button: ConversationButton
    let conversationUUID: UUID
    let screen: Screen
    func fulfill() { screen.say("fulfilled") }
    func fail() { screen.say("failed") }
  }
  private final class Received: Sendable {
    let words = Mutex<[String]>([])
    func take(_ event: CallSystemEvent) {
      let word =
        switch event {
        case .reported(_, let refusal): refusal == nil ? "shown" : "refused"
        case .perform(let id, .answer, _): "answer \(id.raw)"
        case .perform(let id, .end, _): "end \(id.raw)"
        case .requestRefused: "no"
        case .audioActivated: "audio"
        default: "other"
        }
      words.withLock { $0.append(word) }
    }
  }

  @Test func `another call screen's sample: a call is shown, answered once it is connected, asked to be held, and ended`() {
    let (screen, received, queue) = (Screen(), Received(), DispatchQueue(label: "engine"))
    let system = ConversationSystem(screen)
    system.attach(to: queue) { received.take($0) }
    let uuid = UUID()
    func perform(_ request: CallSystemRequest) { queue.sync { system.perform(request) } }
    perform(.report(.init(uuid), .init(k: .phone, h: "+15550000001", n: "Jane"), isVideo: false))
    system.perform(Tap(button: .join, conversationUUID: uuid, screen: screen))
    perform(.complete(.init(1), true))
    system.audio(isActive: true)
    perform(.request(.hold(.init(uuid), true)))
    perform(.request(.digits(.init(uuid), "1")))
    system.perform(Tap(button: .end, conversationUUID: uuid, screen: screen))
    perform(.complete(.init(2), false))
    perform(.complete(.init(2), true))  // completed once
    perform(.reportEnded(.init(uuid), .remoteEnded))
    queue.sync {}
    #expect(screen.shown.withLock { $0 } == ["report Jane", "fulfilled", "asked for pause(true)", "failed", "ended"])
    #expect(received.words.withLock { $0 } == ["shown", "answer 1", "audio", "no", "end 2"])
  }

  @Test func `a call that the other call screen refuses to show is reported as refused`() {
    let (received, queue) = (Received(), DispatchQueue(label: "engine"))
    let system = ConversationSystem(Screen(refuses: true))
    system.attach(to: queue) { received.take($0) }
    queue.sync { system.perform(.report(.init(UUID()), .init(k: .generic, h: "Unknown"), isVideo: false)) }
    queue.sync {}
    #expect(received.words.withLock { $0 } == ["refused"])
  }

  @Test func `the tone of the audio sample is captured until it is stopped, and starts again`() throws {
    let (device, handle) = (SineAudio(), AudioHandle())
    #expect(device.configure(handle) && device.start())
    var frame = [Int16](repeating: 0, count: 160)
    for _ in 0..<2 {
      let limit = ContinuousClock.now + .seconds(10)
      while handle.captured.count < 320, ContinuousClock.now < limit { sched_yield() }
      device.stop()
      device.release()
      var room = frame.mutableSpan
      let isWhole = handle.captured.read(into: &room)
      #expect(isWhole)
      #expect(frame.contains { $0 > 7_000 } && frame.contains { $0 < -7_000 })
      handle.captured.drain()
      #expect(device.configure(handle) && device.start())
    }
    device.stop()
    device.release()
  }
}
