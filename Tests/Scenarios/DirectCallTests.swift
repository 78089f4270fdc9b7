import CallFlow
import CallModel
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

/// Calls between users through the whole control plane: without a carrier, both ends are apps.
@Suite struct DirectCallTests {
  private static let bobsNumber = "+15551230009"
  private static let call = CallID(high: 1, low: 1)

  /// Alice, Bob and Carol, with the changes of `configure`.
  private func world(
    seed: UInt64 = 1, _ configure: @escaping (inout Routing) -> Void = { _ in }
  ) -> World {
    World(seed: seed) { _, routing in
      routing.users = [
        .init(id: "alice", numbers: [World.number]), .init(id: "bob", numbers: [Self.bobsNumber]),
        .init(id: "carol", numbers: []),
      ]
      configure(&routing)
    }
  }

  private func bobs(_ world: World, _ device: String = "bobPhone", _ configure: (App) -> Void = { _ in }) -> App {
    world.app(device) {
      $0.user = "bob"
      configure($0)
    }
  }

  /// The called user's side of Alice's call.
  private func other(_ world: World) throws -> CallID {
    try #require(world.machine.summaries.first { $0.call != Self.call }?.call)
  }

  @Test(arguments: [(Handle.Kind.phone, bobsNumber), (.phone, "001 555 123-0009"), (.generic, "bob")])
  func `the user's devices ring, one answers, both are connected; no carrier gets a request`(kind: Handle.Kind, to: String) throws
  {
    let world = world()
    let alice = world.app("phone")
    let phone = bobs(world) { $0.answersAfter = .milliseconds(300) }
    let tablet = bobs(world, "bobTablet")
    alice.start(Self.call, to: to, kind: kind)
    world.run(.milliseconds(250))
    #expect(alice.received(Self.call) == ["call.progress ringing"], "\(alice.received(Self.call))")
    world.run(.seconds(2))
    #expect(alice.received(Self.call).last == "call.connected")
    let theirs = try other(world)
    #expect(theirs != Self.call && phone.received(theirs) == ["call.offer", "call.connected"], "\(phone.received(theirs))")
    #expect(tablet.received(theirs).last == "call.cancel answeredElsewhere")
    #expect(phone.offers.first?.from == Handle(k: .phone, h: World.number) && phone.offers.first?.pstn?.trunk == "direct")
    // Opus at both ends of both legs: every packet is relayed
    #expect(world.media.trunks.count == 2 && world.media.trunks.allSatisfy { $0.encoding == .opus })
    alice.end(Self.call)
    world.run(.seconds(1))
    #expect(phone.received(theirs).last == "call.ended remoteHangup")
    Invariants.check(world)
    #expect(world.sentINVITEs.isEmpty && world.receivedINVITEs.isEmpty)
    let (mine, its) = (world.records.first { $0.call == Self.call }, world.records.first { $0.call == theirs })
    #expect(mine?.direction == .outgoing && mine?.user == "alice" && mine?.peer == .init(call: theirs, user: "bob"))
    #expect(its?.direction == .incoming && its?.user == "bob" && its?.peer == .init(call: Self.call, user: "alice"))
    #expect(its?.device == "bobPhone" && mine?.device == "phone" && mine?.sipCallId == its?.sipCallId)
    #expect(mine?.to == Self.bobsNumber && its?.from == World.number && mine?.trunk == "direct")
    // the callee's media was up before the caller was notified
    #expect(try #require(its?.times["gateOpen"]) <= #require(mine?.times["connected"]))
  }

  @Test func `a user without a number calls by its id, and is seen by it`() throws {
    let world = world()
    let carol = world.app("carolPhone") { $0.user = "carol" }
    let phone = bobs(world)
    carol.start(Self.call, to: "bob", kind: .generic)
    world.run(.seconds(1))
    #expect(phone.offers.first?.from == Handle(k: .generic, h: "carol"))
    carol.end(Self.call)
    world.run(.seconds(1))
    #expect(phone.received(try #require(phone.offered.first)).last == "call.cancel callerCancelled")
    Invariants.check(world)
  }

  @Test func `an app that was killed is woken, answers and is connected`() throws {
    let world = world()
    let alice = world.app("phone")
    let phone = world.killed("bobPhone") {
      $0.user = "bob"
      $0.answersAfter = .milliseconds(300)
    }
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(4))
    #expect(alice.received(Self.call).last == "call.connected", "\(alice.received(Self.call))")
    phone.end(try other(world))
    world.run(.seconds(1))
    #expect(alice.received(Self.call).last == "call.ended remoteHangup")
    Invariants.check(world)
  }

  @Test(arguments: [
    (CallReject(), "call.ended declined"), (CallReject(reason: .busy), "call.ended busy"),
  ])
  func `the called user's refusal is reported to the caller`(reject: CallReject, received: String) throws {
    let world = world()
    let alice = world.app("phone")
    let phone = bobs(world)
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.milliseconds(500))
    phone.send(.callReject(reject), call: try other(world))
    world.run(.seconds(1))
    #expect(alice.received(Self.call).last == received)
    Invariants.check(world)
  }

  @Test func `no device is reachable, or none answers: unanswered, at once or after the ring time`() {
    let world = world()
    let alice = world.app("phone")
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(1))
    #expect(alice.received(Self.call).last == "call.ended unanswered")
    let phone = bobs(world)
    let second = CallID(high: 1, low: 2)
    alice.start(second, to: Self.bobsNumber)
    world.run(.seconds(44))
    #expect(alice.received(second).last == "call.progress ringing")
    world.run(.seconds(3))
    #expect(alice.received(second).last == "call.ended unanswered")
    #expect(phone.terminals.values.first == ["call.cancel unanswered"])
    Invariants.check(world)
  }

  @Test func `the called device has no media: neither is connected`() {
    let world = world()
    let alice = world.app("phone")
    let phone = bobs(world) {
      $0.answersAfter = .milliseconds(100)
      $0.media.dtls = nil
    }
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(25))
    #expect(alice.received(Self.call) == ["call.progress ringing", "call.ended unanswered"])
    #expect(phone.terminals.values.first == ["call.ended mediaTimeout"])
    Invariants.check(world)
  }

  @Test func `the caller has no media: no device rings`() {
    let world = world()
    let alice = world.app("phone") { $0.media.ice = nil }
    let phone = bobs(world)
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(7))
    #expect(alice.received(Self.call).last == "call.ended mediaFailed" && phone.offered.isEmpty)
    Invariants.check(world)
  }

  @Test func `either holds: the other is notified, and of the end of the hold`() throws {
    let world = world()
    let alice = world.app("phone")
    let phone = bobs(world) { $0.answersAfter = .milliseconds(100) }
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(1))
    let theirs = try other(world)
    alice.send(.callHold(CallHold(on: true)), call: Self.call)
    world.run(.milliseconds(200))
    #expect(phone.received(theirs).last == "call.held remote true")
    phone.send(.callHold(CallHold(on: true)), call: theirs)
    world.run(.milliseconds(200))
    #expect(alice.received(Self.call).last == "call.held remote true")
    alice.send(.callHold(CallHold(on: false)), call: Self.call)
    phone.send(.callHold(CallHold(on: false)), call: theirs)
    world.run(.milliseconds(200))
    #expect(alice.received(Self.call).last == "call.held remote false")
    #expect(world.media.trunks.suffix(2).allSatisfy { $0.sends && $0.receives })
    phone.end(theirs)
    world.run(.seconds(1))
    Invariants.check(world)
  }

  // MARK: who may

  @Test(arguments: [(Handle.Kind.phone, World.number), (.generic, "alice")])
  func `a call to oneself is refused`(kind: Handle.Kind, to: String) {
    let world = world()
    let alice = world.app("phone")
    let tablet = world.app("tablet")
    alice.start(Self.call, to: to, kind: kind)
    world.run(.seconds(1))
    #expect(alice.errors == [.forbidden] && tablet.offered.isEmpty && world.records.isEmpty)
    #expect(world.refusals.map(\.reason) == [.ownNumber])
  }

  @Test func `routes.users: trunk dials another user like any number, and no ids`() {
    let world = world { $0.connectsUsers = false }
    let alice = world.app("phone")
    let phone = bobs(world)
    alice.start(Self.call, to: Self.bobsNumber)
    alice.start(CallID(high: 1, low: 2), to: "bob", kind: .generic)
    world.run(.seconds(1))
    #expect(world.sentINVITEs.count == 1 && phone.offered.isEmpty && alice.errors == [.notFound])
  }

  @Test func `prefixes that a user may dial do not limit calls to other users; the number of calls does`() {
    let world = world { $0.users[0].allowance = UserAllowance(prefixes: ["+49"], calls: 1) }
    let alice = world.app("phone")
    _ = bobs(world)
    alice.start(Self.call, to: Self.bobsNumber)
    alice.start(CallID(high: 1, low: 2), to: Self.bobsNumber)
    world.run(.milliseconds(500))
    #expect(alice.received(Self.call).last == "call.progress ringing" && alice.errors == [.tooMany])
  }

  @Test func `no outbound route is needed, and no trunk`() {
    let world = world { ($0.outbound, $0.trunks, $0.inbound) = ([], [], []) }
    let alice = world.app("phone")
    _ = bobs(world) { $0.answersAfter = .milliseconds(100) }
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(1))
    #expect(alice.received(Self.call).last == "call.connected")
  }

  @Test func `two users who call each other at the same moment have two calls, and may answer either`() throws {
    let world = world()
    let alice = world.app("phone")
    let phone = bobs(world)
    let second = CallID(high: 2, low: 1)
    alice.start(Self.call, to: Self.bobsNumber)
    phone.start(second, to: World.number)
    world.run(.milliseconds(500))
    let theirs = try #require(phone.offered.first { $0 != second })
    #expect(alice.received(Self.call).last == "call.progress ringing" && phone.received(second).last == "call.progress ringing")
    phone.tap(theirs)
    world.run(.seconds(1))
    #expect(alice.received(Self.call).last == "call.connected")
    phone.end(second)
    world.run(.seconds(1))
    phone.end(theirs)
    world.run(.seconds(1))
    Invariants.check(world)
    #expect(world.records.count == 4)
  }

  // MARK: diversions

  @Test func `no device answers: the carrier does, by the called user's rule; audio of both is joined`() throws {
    let world = world {
      $0.users[1].diversions.rules[.noAnswer] = .init(
        .number("+15557654321", showsCaller: false), after: .seconds(5))
    }
    world.carrier.answers = [(.milliseconds(20), 180), (.milliseconds(300), 200)]
    let alice = world.app("phone")
    let phone = bobs(world)
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(8))
    #expect(phone.terminals.values.first == ["call.cancel diverted"])
    #expect(alice.received(Self.call).last == "call.connected" && world.sentINVITEs.count == 1)
    world.carrier.hangUp(try #require(world.carrier.inboundLeg))
    world.run(.seconds(1))
    #expect(alice.received(Self.call).last == "call.ended remoteHangup")
    Invariants.check(world)
    #expect(world.records.first { $0.user == "bob" }?.diversions?.first?.number == "+15557654321")
  }

  @Test(arguments: [["alice"], ["carol", "bob"], ["carol", "alice"]])
  func `diversions between users that lead back end with 482`(path: [String]) {
    let world = world {
      $0.users[1].diversions.rules[.unreached] = .init(.user(path[0]))
      if path.count > 1 { $0.users[2].diversions.rules[.unreached] = .init(.user(path[1])) }
    }
    let alice = world.app("phone")
    let tablet = world.app("tablet")
    alice.start(Self.call, to: Self.bobsNumber)
    world.run(.seconds(30))
    #expect(alice.received(Self.call).last?.hasPrefix("call.ended") == true && tablet.offered.isEmpty)
    Invariants.check(world)
    #expect(world.records.first { $0.user != "alice" }?.end.sip == 482)
  }

  // MARK: interleavings

  /// Caller and called user act at any time, in any order, or never: two records, one end for each device, nothing left.
  @Test(arguments: [0, 25, 60, 95, 110, 125, 140, 400, nil] as [Int?])
  func `whoever ends it, and whenever`(callerEnds: Int?) {
    for answers in [0, 30, 55, 90, nil] as [Int?] {
      for second in [31, nil] as [Int?] {
        for calledEnds in [100, 120, 135, 420, nil] as [Int?] {
          for (mine, theirs) in [(60, 60), (400, 60), (60, 400), (60, 0)] {
            let world = world()
            let alice = world.app("phone") { $0.media.dtls = .milliseconds(mine) }
            let phone = bobs(world) {
              $0.answersAfter = answers.map { .milliseconds($0) }
              $0.media.dtls = theirs == 0 ? nil : .milliseconds(theirs)
            }
            let tablet = bobs(world, "bobTablet") { $0.answersAfter = second.map { .milliseconds($0) } }
            alice.start(Self.call, to: Self.bobsNumber)
            if let callerEnds { world.after(.milliseconds(callerEnds)) { alice.end(Self.call) } }
            if let calledEnds {
              world.after(.milliseconds(calledEnds)) {
                for device in [phone, tablet] {
                  guard let call = device.offered.first else { continue }
                  if device.won.contains(call) { device.end(call) } else { device.send(.callReject(CallReject()), call: call) }
                }
              }
            }
            world.run(.seconds(50))
            for summary in world.machine.summaries { world.give(.hangUp(summary.call)) }
            Invariants.check(world)
            let users = world.records.map { $0.user ?? "" }.sorted()
            #expect(users == ["alice", "bob"] || users == ["alice"] || users.isEmpty)
            for record in world.records where record.user == "bob" {
              #expect(record.peer?.call == Self.call)
              let caller = world.records.first { $0.call == Self.call }
              #expect((record.times["connected"] == nil) == (caller?.times["connected"] == nil), "one side alone was connected")
            }
          }
        }
      }
    }
  }
}
