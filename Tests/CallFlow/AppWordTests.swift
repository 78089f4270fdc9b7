import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

/// What an app says of itself: the way from its push to its ringing, and how the call sounds there.
@Suite struct AppWordTests {
  private func steps(_ world: Surroundings) -> [Measurement] {
    world.measurements.filter { if case .app = $0 { true } else { false } }
  }

  // MARK: call.ringing

  @Test func `what a ringing app measured is counted once, and the record has that of the device that answered`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.connect(tablet)
    let leg = world.invite()
    let call = try #require(world.offeredCall(tablet))
    world.notify(tablet, .callRinging(CallRinging(pushMs: 9_000)), call: call)
    let ringing = CallRinging(pushMs: 420, reportMs: 35, openMs: 610)
    world.notify(phone, .callRinging(ringing), call: call)
    // repeated on a new session
    world.connect(phone, "again")
    world.notify(phone, .callRinging(ringing), call: call, on: "again")
    #expect(
      steps(world) == [
        .app(.push, .seconds(9)), .app(.push, .milliseconds(420)), .app(.report, .milliseconds(35)),
        .app(.open, .milliseconds(610)),
      ])
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call, on: "again")
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.request(phone, .callEnd(CallEnd()), call: call, on: "again")
    world.expectRecord(.localEnd)
    #expect(world.records.first?.ring == .init(device: "phone", pushMs: 420, reportMs: 35, openMs: 610))
  }

  @Test func `if nobody answers the record has that of the first device that said any`() throws {
    let world = Surroundings()
    for key in [phone, tablet] { world.connect(key) }
    let leg = world.invite()
    let call = try #require(world.offeredCall(tablet))
    world.notify(phone, .callRinging(CallRinging()), call: call)
    world.notify(tablet, .callRinging(CallRinging(openMs: 700)), call: call)
    world.request(tablet, .callReject(CallReject(scope: .device)), call: call)
    world.feed(.sip(.cancelled(leg, nil)))
    world.expectRecord(.callerCancelled)
    #expect(world.records.first?.ring == .init(device: "tablet", openMs: 700))
  }

  @Test func `of a device that answered and measured nothing the record has nothing`() throws {
    let world = Surroundings()
    world.connect(tablet)
    let (_, call) = try world.ringing()
    world.notify(tablet, .callRinging(CallRinging(pushMs: 1)), call: call)
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    world.request(phone, .callEnd(CallEnd()), call: call)
    world.expectRecord(.localEnd)
    #expect(world.records.first?.ring == nil && world.records.first?.appStats == nil)
  }

  // MARK: stats

  @Test func `stats of who has the call are in the summary and the record: the newest, and the worst of each`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.machine.summaries.first?.appStats == nil)
    world.notify(phone, .stats(StreamStats(rttMs: 140, jitterMs: 3, loss: 0, bytes: 100, mos: 4.3)), call: call)
    world.notify(
      phone, .stats(StreamStats(rttMs: 62, jitterMs: 9.5, loss: 0.02, bytes: 200, plc: 60, codec: "opus", mos: 3.9)), call: call)
    let last = StreamStats(rttMs: 70, loss: 0, bytes: 300, plc: 60, codec: "opus", mos: 4.2)
    world.notify(phone, .stats(last), call: call)
    // of no device, and of another device
    world.connect(tablet)
    world.notify(tablet, .stats(StreamStats(rttMs: 9_999)), call: call)
    let shown = try #require(world.machine.summaries.first?.appStats)
    #expect(shown.reports == 3 && shown.last == last)
    #expect(shown.worst == .init(rttMs: 140, jitterMs: 9.5, loss: 0.02, mos: 3.9))
    world.request(phone, .callEnd(CallEnd()), call: call)
    world.expectRecord(.localEnd)
    #expect(world.records.first?.appStats == shown)
  }

  @Test func `stats that cannot be are left out, and a message of nothing else counts as none`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    let impossible = [
      StreamStats(rttMs: -1, jitterMs: 60_001, loss: 1.01, bytes: -5, plc: -1, codec: "", mos: 0.9),
      StreamStats(rttMs: 1e300, loss: -0.1, bytes: .max, plc: 1e12, codec: String(repeating: "x", count: 65), mos: 5.1),
      StreamStats(codec: "op us"), StreamStats(codec: "☎"), StreamStats(),
    ]
    for stats in impossible { world.notify(phone, .stats(stats), call: call) }
    #expect(world.machine.summaries.first?.appStats == nil)
    world.notify(phone, .stats(StreamStats(rttMs: 60_000, loss: 2, mos: 1)), call: call)
    for stats in impossible { world.notify(phone, .stats(stats), call: call) }
    let shown = try #require(world.machine.summaries.first?.appStats)
    #expect(shown.reports == 1 && shown.last == StreamStats(rttMs: 60_000, mos: 1) && shown.worst == .init(rttMs: 60_000, mos: 1))
    #expect(world.machine.summaries.first?.state == .connected)
  }

  @Test func `stats before anybody has the call, and after its end, are nobody's`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing()
    world.notify(phone, .stats(StreamStats(rttMs: 5)), call: call)
    #expect(world.machine.summaries.first?.appStats == nil)
    world.feed(.sip(.cancelled(leg, nil)))
    world.notify(phone, .stats(StreamStats(rttMs: 5)), call: call)
    world.expectRecord(.callerCancelled)
    #expect(world.records.first?.appStats == nil)
  }
}
