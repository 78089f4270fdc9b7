import CallFlow
import CallModel
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

/// Calls of apps to the gateway itself, through the whole control plane.
@Suite struct TestCallTests {
  private static let call = CallID(high: 1, low: 1)

  private func world(bound: Int = 1_000, _ configure: @escaping (inout Routing) -> Void = { _ in }) -> World {
    World(seed: 3) { configuration, routing in
      configuration.bounds.calls = bound
      // the limits of calls to others do not apply to it
      routing.users = [
        .init(id: "alice", numbers: [World.number], allowance: UserAllowance(prefixes: ["+49"], calls: 0, callsPerHour: 0)),
        .init(id: "carol", numbers: []),
      ]
      configure(&routing)
    }
  }
  private func test(_ app: App, _ call: CallID = call) { app.start(call, to: TestCall.handle, kind: .generic) }

  /// What the media thread measures of the call; of 300 packets of the device `loss` are missing.
  private func measure(_ world: World, _ call: CallID = call, loss: UInt64 = 30) throws {
    var statistics = MediaStatistics()
    (statistics.fromApp.packets, statistics.fromApp.lost) = (300 - loss, loss)
    (statistics.fromApp.jitterMilliseconds, statistics.fromApp.roundTripMilliseconds) = (12, 40.0)
    statistics.fromApp.meanOpinionScore = 3.2
    let session = try #require(world.media.open.first)
    world.give(.media(.quality(session, statistics)))
  }
  private func refusal(_ app: App) -> Failure? {
    for case .err(let failure) in app.answers.values { return failure }
    return nil
  }

  @Test func `the gateway answers, measures and hangs up, and says what came from the device; no carrier is asked`() throws {
    let world = world()
    let phone = world.app("phone")
    test(phone)
    world.run(.seconds(1))
    #expect(phone.received(Self.call) == ["call.update", "call.connected"], "\(phone.received(Self.call)) \(phone.answers)")
    #expect(world.media.trunks.map(\.encoding) == [.g722])
    let session = try #require(world.media.open.first)
    world.give(.media(.firstAudio(session, .appToTrunk, at: world.now)))
    // too early to judge
    try measure(world)
    #expect(phone.received(Self.call).last != "call.ended remoteHangup")
    world.run(.seconds(5))
    try measure(world)
    world.run(.seconds(1))
    #expect(phone.received(Self.call).last == "call.ended remoteHangup")
    let received = try #require(phone.overs[Self.call]?.received)
    #expect(received.loss == 0.1 && received.mos == 3.2 && received.jitterMs == 12 && received.rttMs == 40)
    #expect(received.audio == true)
    let record = try #require(world.records.first)
    #expect(record.isTest && record.trunk == "preflight" && record.to == "trunkline:echo" && record.user == "alice")
    #expect(record.end.reason == .remoteHangup && record.end.by == .gateway && record.device == "phone")
    #expect(world.sentINVITEs.isEmpty)
    Invariants.check(world)
  }

  @Test func `silence is not audio, and a call without a measurement ends after 15 seconds`() throws {
    let world = world()
    let phone = world.app("phone")
    test(phone)
    world.run(.seconds(6))
    try measure(world)
    world.run(.seconds(1))
    #expect(phone.overs[Self.call]?.received?.audio == false)
    let second = CallID(high: 1, low: 2)
    test(phone, second)
    world.run(.seconds(14))
    #expect(phone.received(second) == ["call.update", "call.connected"])
    world.run(.seconds(3))
    #expect(phone.received(second).last == "call.ended remoteHangup" && phone.overs[second]?.received == nil)
    Invariants.check(world)
  }

  @Test func `media first: a device without any is not connected`() {
    let world = world()
    let phone = world.app("phone") { $0.media.dtls = nil }
    test(phone)
    world.run(.seconds(10))
    #expect(phone.received(Self.call) == ["call.ended mediaFailed"])
    Invariants.check(world)
  }

  @Test func `it ends with its device's socket, and no snapshot has it`() {
    let world = world()
    let phone = world.app("phone")
    test(phone)
    world.run(.seconds(1))
    phone.drop()
    world.run(.seconds(1))
    #expect(world.records.map(\.end.reason) == [.networkLost])
    phone.connect()
    world.run(.seconds(1))
    #expect(phone.welcome?.calls?.isEmpty == true)
    Invariants.check(world)
  }

  @Test func `a user has one at a time and twenty an hour`() {
    let world = world()
    let (phone, tablet) = (world.app("phone"), world.app("tablet"))
    test(phone)
    world.run(.seconds(1))
    test(tablet, CallID(high: 2, low: 1))
    world.run(.seconds(1))
    #expect(refusal(tablet)?.code == .tooMany)
    phone.end(Self.call)
    world.run(.seconds(1))
    for index in 2...20 {
      let call = CallID(high: 1, low: UInt64(index))
      test(phone, call)
      world.run(.seconds(1))
      #expect(phone.received(call).last == "call.connected", "\(index)")
      phone.end(call)
      world.run(.seconds(1))
    }
    test(phone, CallID(high: 1, low: 21))
    world.run(.seconds(1))
    #expect(refusal(phone)?.code == .tooMany && world.records.count == 20)
    Invariants.check(world)
  }

  @Test func `test calls are few, and leave room for others`() {
    let world = world(bound: 4) {
      $0.users = ["alice", "bob", "carol"].map { .init(id: $0, numbers: ["+1555999000\($0.utf8.count)"]) }
    }
    let apps = ["alice", "bob", "carol"].map { user in world.app(user + "Phone") { $0.user = user } }
    test(apps[0])
    world.run(.seconds(1))
    // one in fifty, and at least one
    test(apps[1], CallID(high: 1, low: 2))
    world.run(.seconds(1))
    #expect(refusal(apps[1])?.code == .overload)
    apps[0].end(Self.call)
    world.run(.seconds(1))
    for (index, app) in apps.enumerated() { app.start(CallID(high: 1, low: UInt64(index + 3))) }
    world.run(.seconds(1))
    #expect(world.machine.summaries.count == 3)
    // the last quarter is for calls to others
    test(apps[2], CallID(high: 1, low: 9))
    world.run(.seconds(1))
    #expect(refusal(apps[2])?.code == .overload)
    apps[1].start(CallID(high: 1, low: 10))
    world.run(.seconds(1))
    #expect(world.machine.summaries.count == 4)
    for app in apps { for call in app.offered { app.end(call) } }
    world.run(.seconds(1))
    Invariants.check(world)
  }

  @Test func `it has nothing but media: no hold, digits, transfer, group or recording, by app or program`() throws {
    let world = world()
    let phone = world.app("phone")
    test(phone)
    world.run(.seconds(1))
    let requests: [ClientMessage] = [
      .callHold(CallHold(on: true)), .callDTMF(CallDTMF(digits: "1")), .callGroup(CallGroup(with: nil)),
      .callTransfer(CallTransfer(target: Handle(k: .phone, h: "+4930123456"))),
    ]
    for request in requests {
      let id = try #require(phone.send(request, call: Self.call))
      world.run(.seconds(0.2))
      guard case .err(let failure)? = phone.answers[id] else {
        Issue.record("no err: \(request)")
        continue
      }
      #expect(failure.code == .badState)
    }
    for command in [CallCommand.hold(true), .record(true), .play(nil), .digits(CallDTMF(digits: "1"))] {
      guard case .refused(let failure)? = world.operate({ .command(Self.call, command, $0) }) else {
        Issue.record("done: \(command)")
        continue
      }
      #expect(failure.code == .badState)
    }
    #expect(world.operate { .command(Self.call, .hangUp(nil), $0) } == .done)
    world.run(.seconds(1))
    Invariants.check(world)
  }

  @Test func `nothing but call_start leads to one`() {
    let world = world { $0.users = [.init(id: TestCall.handle, numbers: []), .init(id: "alice", numbers: [World.number])] }
    let phone = world.app("phone")
    // as a telephone number the handle is not a test call
    phone.start(Self.call, to: TestCall.handle, kind: .phone)
    world.run(.seconds(1))
    #expect(refusal(phone)?.code == .notFound)
    // for a program it is the user with this id, if there is one
    let made = world.operate { .originate(OriginateRequest(user: "alice", to: TestCall.handle), $0) }
    guard case .originated(let call)? = made else {
      Issue.record("not made: \(String(describing: made))")
      return
    }
    #expect(world.machine.summaries.map(\.trunk) == [Routing.directTrunk])
    #expect(world.operate { .command(call, .hangUp(nil), $0) } == .done)
    world.run(.seconds(1))
    #expect(world.records.allSatisfy { !$0.isTest })
    Invariants.check(world)
  }
}
