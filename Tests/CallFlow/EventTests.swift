import AppSessions
import Devices
import PushPolicy
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// Events that are published outside the gateway.
@Suite struct EventTests {
  private func world(digits: Bool = false, pushes: Bool = false) -> Surroundings {
    let world = Surroundings(pushes: pushes)
    world.feed(.events(.init(isOn: true, hasDigits: digits)))
    return world
  }
  private func facts(_ event: GatewayEvent) -> CallEventFacts? { if case .call(let facts) = event.facts { facts } else { nil } }
  private func calls(_ world: Surroundings) -> [GatewayEvent.Kind] { world.events.filter { facts($0) != nil }.map(\.kind) }

  @Test func `a call is told from its start to its connection, and not unless events are on`() throws {
    let world = world()
    let (leg, call) = try world.connected()
    #expect(calls(world) == [.callStarted, .callRinging, .callAnswered, .callConnected])
    let last = try #require(world.events.last.flatMap(facts))
    #expect(last.call == call && last.user == Surroundings.phone.user && last.device == Surroundings.phone.device)
    #expect(world.events.allSatisfy { $0.subject == call.description })
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(calls(world).count == 4, "the end is the record's")
    let silent = Surroundings()
    _ = try silent.connected()
    #expect(silent.events.isEmpty)
  }

  @Test func `an event comes before the journal entry of its call`() throws {
    let world = world()
    world.connect(Surroundings.phone)
    world.actions.removeAll()
    _ = world.invite()
    let started = world.actions.firstIndex { if case .event(let event) = $0 { event.kind == .callStarted } else { false } }
    let journal = world.actions.firstIndex { if case .journal = $0 { true } else { false } }
    #expect(try #require(started) < #require(journal))
  }

  @Test func `holds say who holds, digits are told only if that is on, quality only when it changes`() throws {
    for digits in [false, true] {
      let world = world(digits: digits)
      let (_, call) = try world.connected()
      world.events.removeAll()
      world.request(Surroundings.phone, .callHold(CallHold(on: true)), call: call)
      world.request(Surroundings.phone, .callHold(CallHold(on: false)), call: call)
      #expect(calls(world) == [.callHeld, .callResumed] && world.events.compactMap(facts).map(\.by) == [.app, .app])
      let session = try #require(world.firstSession)
      world.events.removeAll()
      world.feed(.media(.digit(session, from: .trunkToApp, digit: "7", durationMilliseconds: 100)))
      #expect(world.events.compactMap(facts).compactMap(\.digits) == (digits ? [.init(digits: "7", from: .trunk)] : []))
      world.events.removeAll()
      var statistics = MediaStatistics()
      for score in [4.2, 2.5, 2.4, 4.0, 4.1] {
        statistics.fromTrunk.meanOpinionScore = score
        statistics.fromApp.packets += 250
        world.feed(.media(.quality(session, statistics)))
      }
      #expect(world.events.compactMap(facts).compactMap(\.quality).map(\.level) == [.poor, .good])
      world.events.removeAll()
      world.feed(.media(.trunkSilent(session)))
      #expect(world.events.compactMap(facts).compactMap(\.quality) == [.init(level: .poor, cause: .silence, side: .trunk)])
    }
  }

  @Test
  func
    `an app from which nothing comes is poor and silent for all who look, until it sends again; held or muted it need not send`()
    throws
  {
    let world = world()
    let (_, call) = try world.connected()
    let session = try #require(world.firstSession)
    world.events.removeAll()
    var statistics = MediaStatistics()
    statistics.fromTrunk.meanOpinionScore = 4.3
    func measured(_ packets: UInt64) -> Quality? {
      statistics.fromApp.packets += packets
      world.feed(.media(.quality(session, statistics)))
      guard case .quality(let quality) = world.messages[Surroundings.phone]?.last else { return nil }
      return quality
    }
    func silent() -> CallSide? { world.machine.callPage(after: nil, most: 8).rows.first?.summary.silent }
    let good = Quality(level: "good")
    let silence = Quality(level: "poor", cause: "silence")
    #expect(measured(250) == good && silent() == nil)
    #expect(measured(0) == silence && silent() == .app)
    #expect(measured(0) == silence && measured(1) == good && silent() == nil)
    #expect(
      world.events.compactMap(facts).compactMap(\.quality).map { [$0.level.rawValue, $0.cause?.rawValue, $0.side?.rawValue] } == [
        ["poor", "silence", "app"], ["good", nil, nil],
      ])
    world.request(Surroundings.phone, .callHold(CallHold(on: true)), call: call)
    #expect(measured(0) == good)
    world.request(Surroundings.phone, .callHold(CallHold(on: false)), call: call)
    world.request(Surroundings.phone, .callMute(CallMute(on: true, mode: .input)), call: call)
    #expect(measured(0) == good && silent() == nil)
  }

  @Test func `devices are told when they are new, refused and revoked`() throws {
    let world = world(pushes: true)
    _ = try world.parked(accepted: false)
    #expect(world.events.filter { facts($0) == nil }.map(\.kind) == [.deviceRegistered])
    world.register()
    #expect(world.events.filter { facts($0) == nil }.count == 1, "it was known")
    world.pushed(.unregistered(before: nil), reason: "Unregistered")
    #expect(world.events.filter { facts($0) == nil }.map(\.kind) == [.deviceRegistered, .deviceRefused])
    world.register()
    world.operate { .devices(.revoke(user: Surroundings.phone.user, device: nil, $0)) }
    #expect(world.events.last?.kind == .deviceRevoked)
    #expect(world.events.last?.subject == "\(Surroundings.phone.user)/\(Surroundings.phone.device)")
  }

  @Test func `an operator's word on a trunk is told once`() {
    let world = world()
    let trunk = world.machine.routing.trunks[0].name
    for isDisabled in [true, true, false] { world.feed(.setTrunk(trunk, isDisabled: isDisabled)) }
    #expect(world.events.map(\.kind) == [.trunkDown, .trunkUp])
    #expect(world.events[0].facts == .trunk(.init(trunk: trunk, why: "disabled")))
  }
}
