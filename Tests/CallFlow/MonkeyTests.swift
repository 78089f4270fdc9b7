import AppSessions
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// Random inputs in random order, from every side, with calls, legs and sessions mixed up. Prints its seed when it fails.
@Suite struct MonkeyTests {
  @Test func `whatever arrives in whatever order, records and messages balance`() throws {
    var opened = 0
    for seed in 1...60 { opened += try run(seed: UInt64(seed)) }
    #expect(opened > 60, "the gate hardly ever opens: the monkey tests little")
  }

  /// Returns how many calls passed the gate.
  private func run(seed: UInt64) throws -> Int {
    var monkey = Monkey(seed: seed)
    for _ in 0..<400 { monkey.act() }
    monkey.end()
    monkey.checkBalance()
    monkey.checkRepeats()
    return monkey.opened
  }
}

/// Random inputs of one seed.
private struct Monkey {
  private let seed: UInt64
  private var random: SplitMix64
  private let world: Surroundings
  private let devices = [Surroundings.phone, Surroundings.tablet, DeviceKey(user: "bob", device: "b")]
  private var invites = 0
  private var inboundLegs: [LegID] = []

  /// What an input may name: of a call that exists or ended, or of none.
  private struct Names {
    var call: CallID
    var device: DeviceKey
    var session: MediaSessionID
    var leg: AppLegID
    var trunk: LegID
  }

  init(seed: UInt64) {
    self.seed = seed
    random = SplitMix64(seed: seed)
    world = Surroundings(pushes: true) { configuration, routing in
      configuration.bounds.callsPerUser = 4
      routing.trunks[0].maximumCalls = 6
    }
    world.closesMedia = seed % 3 != 0
    world.journals = seed % 5 != 0
  }

  /// How many calls passed the gate.
  var opened: Int { world.records.count { $0.times[CallStage.gateOpen.rawValue] != nil } }

  private mutating func pick<T>(_ items: [T]) -> T? { items.isEmpty ? nil : items[Int(random.next() % UInt64(items.count))] }

  mutating func act() {
    let calls = Array(world.machine.calls.ids.sorted { $0.description < $1.description }) + world.records.suffix(2).map(\.call)
    let call = pick(calls) ?? Identifier(high: 1, low: 1)
    let device = pick(devices) ?? Surroundings.phone
    let session = MediaSessionID(raw: random.next() % (world.machine.nextNumber + 1))
    let leg = AppLegID(raw: UInt32(random.next() % 4))
    let legs = Array(world.machine.calls.legs.sorted { $0.raw < $1.raw })
    let trunk = pick(legs + inboundLegs.suffix(2)) ?? .inbound(0)
    let names = Names(call: call, device: device, session: session, leg: leg, trunk: trunk)
    let kind = random.next() % 34
    switch kind {
    case 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 21, 28, 30, 31, 32, 33: actAsApp(kind, names)
    default: actAsTrunkOrMedia(kind, names)
    }
  }

  /// An event or a message of the app side.
  private mutating func actAsApp(_ kind: UInt64, _ names: Names) {
    let (call, device) = (names.call, names.device)
    switch kind {
    case 2: world.connect(device, "\(device.device)\(random.next() % 2)", resumed: random.next() % 2 == 0)
    case 3: world.feed(.app(.disconnected(device, SessionID("\(device.device)\(random.next() % 2)"))))
    case 4: world.feed(.app(.ended(device, SessionID("\(device.device)\(random.next() % 2)"))))
    case 5: world.notify(device, .callRinging(CallRinging()), call: call)
    case 6: _ = world.request(device, .callPrepare(CallPrepare(sdp: Surroundings.appSDP())), call: call)
    case 7: _ = world.request(device, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    case 8: world.notify(device, .mediaReady(MediaReady(gen: 1 + Int(random.next() % 2))), call: call)
    case 12: _ = world.request(device, .callReject(CallReject(scope: random.next() % 2 == 0 ? .all : .device)), call: call)
    case 13: _ = world.request(device, .callEnd(CallEnd()), call: call)
    case 14:
      let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass"))
      _ = world.request(
        device, .callStart(start), call: random.next() % 3 == 0 ? call : Identifier(high: seed, low: random.next()))
    case 21:
      let sdp = Surroundings.appSDP(setup: "actpass", fingerprint: UInt8(random.next() % 3))
      _ = world.request(device, .mediaRestart(MediaRestart(sdp: sdp, gen: 1 + Int(random.next() % 4))), call: call)
    case 28:
      world.connect(device, "w\(random.next() % 2)", platform: "ios", state: random.next() % 2 == 0 ? .bg : .fg, wake: call)
    case 30: _ = world.reject(device, call, CallReject(scope: random.next() % 2 == 0 ? .all : .device))
    case 31:
      let requests: [ClientMessage] = [
        .devicePut(Surroundings.put(device)), .devicePut(DevicePut(prefs: .init(dnd: random.next() % 2 == 0))), .deviceDel,
      ]
      _ = world.request(device, pick(requests) ?? .deviceDel, call: nil)
    case 32:
      let events: [SessionEvent] = [
        .stateChanged(device, .bg), .upgraded(device, SessionID(device.device), DeviceInfo()),
        .overAcked(device, SessionID(device.device), call: call), .offerAcked(device, SessionID(device.device), call: call),
      ]
      world.feed(.app(pick(events) ?? .stateChanged(device, .fg)))
    case 33:
      if random.next() % 8 == 0 {
        world.operate { .devices(.revoke(user: device.user, device: device.device, $0)) }
      } else {
        world.operate { .devices(.allow(device, $0)) }
      }
    default: break
    }
  }

  private mutating func actAsTrunkOrMedia(_ kind: UInt64, _ names: Names) {
    let (call, session, leg, trunk) = (names.call, names.session, names.leg, names.trunk)
    switch kind {
    case 0, 1:
      invites += 1
      let number = pick(["+15551230001", "+15551230009", "+1555"]) ?? ""
      let sdp = pick([Surroundings.trunkSDP(), nil, Surroundings.trunkSDP(formats: "18")]) ?? nil
      inboundLegs.append(world.invite(to: number, sdp: sdp))
    case 9:
      world.feed(.media(.nominated(session, leg, generation: Int(random.next() % 3), remote: SocketAddress(.loopback, 1))))
    case 10: world.feed(.media(.keysInstalled(session, leg, generation: Int(random.next() % 3), profile: "x")))
    case 11:
      world.feed(.media(.appLegFailed(session, leg, pick([.dtls("x"), .fingerprintMismatch, .noCommonProfile]) ?? .dtls(""))))
    case 15:
      let ends: [UserAgent.Event] = [.cancelled(trunk, nil), .byeReceived(trunk, nil), .ackTimedOut(trunk), .legClosed(trunk)]
      world.feed(.sip(pick(ends) ?? .legClosed(trunk)))
    case 16: world.feed(.sip(.acknowledged(trunk, sdp: random.next() % 2 == 0 ? nil : Surroundings.trunkSDP())))
    case 17:
      let sdp = random.next() % 2 == 0 ? nil : Surroundings.trunkSDP()
      world.feed(.sip(.progress(trunk, code: pick([100, 180, 182, 183]) ?? 180, sdp: sdp)))
    case 18:
      let refusal = UserAgent.Event.failed(trunk, code: 486, cause: nil, byTransport: false)
      world.feed(.sip(random.next() % 2 == 0 ? .answered(trunk, sdp: Surroundings.trunkSDP()) : refusal))
    case 19: world.feed(.sip(.reinviteReceived(trunk, sdp: random.next() % 2 == 0 ? nil : Surroundings.trunkSDP())))
    case 20:
      let events: [MediaEvent] = [
        .appOneWay(session, leg, .trunkToApp),
        .appLegSilent(session, leg), .appLegBack(session, leg), .trunkSilent(session), .trunkBack(session),
      ]
      world.feed(.media(pick(events) ?? .trunkBack(session)))
    case 22:
      world.feed(.media(random.next() % 4 == 0 ? .closed(session, MediaStatistics()) : .quality(session, MediaStatistics())))
    case 29:
      if let push = pick(world.pushes) {
        let outcomes: [PushReport.Outcome] = [
          .accepted, .failed, .tokenMismatch, .unregistered(before: nil), .unregistered(before: 5),
        ]
        let report = PushReport(
          key: push.key, target: push.target, outcome: pick(outcomes) ?? .failed, reason: "x", isFault: false,
          attempts: Int(random.next() % 3), elapsed: .zero)
        // a second report for one push has no owner and must change nothing
        world.feed(.pushed(report))
      }
    case 23, 24, 25, 26:
      // without this nomination the gate hardly ever opens
      guard let live = world.machine.calls[call], let winner = live.winnerIndex else { return }
      let device = live.devices[winner]
      let address = SocketAddress(.loopback, 1)
      world.feed(.media(.nominated(live.session, device.id, generation: device.epoch, remote: address)))
      world.feed(.media(.keysInstalled(live.session, device.id, generation: device.epoch, profile: "x")))
      world.notify(device.key, .mediaReady(MediaReady(gen: device.gen)), call: call)
    default: world.pass(.milliseconds(Int(random.next() % 20_000)))
    }
  }

  func end() {
    for call in world.machine.calls.ids { world.feed(.hangUp(call)) }
    for leg in world.machine.calls.legs { world.feed(.sip(.legClosed(leg))) }
    world.pass(.seconds(130))
  }

  /// Each INVITE and call has one record or refusal, and nothing is left.
  func checkBalance() {
    let statistics = world.machine.statistics
    #expect(invites == statistics.incoming + world.refusals.count { $0.direction == .incoming }, "seed \(seed)")
    #expect(world.records.count == statistics.incoming + statistics.outgoing, "seed \(seed)")
    #expect(Set(world.records.map(\.call)).count == world.records.count, "seed \(seed)")
    #expect(statistics.answeredWithoutMedia == 0 && statistics.tombstones == 0, "seed \(seed)")
    #expect(statistics.states.values.allSatisfy { $0 == 0 }, "seed \(seed)")
    #expect(world.machine.calls.isEmpty && world.machine.calls.legs.isEmpty, "seed \(seed)")
    #expect(world.machine.trunksWithCalls.isEmpty && world.machine.nextDeadline == nil, "seed \(seed)")
  }

  /// What may be sent once was sent once.
  func checkRepeats() {
    // one accepted push per (call, device), and no second request unless the first was certainly refused
    let keys = Dictionary(grouping: world.pushes, by: \.key).mapValues { $0.map(\.target) }
    #expect(keys.values.allSatisfy { Set($0).count == $0.count }, "seed \(seed): the same registration was pushed to twice")
    // one terminal message per (call, device) at most, one final response per INVITE
    var terminals: [String: Int] = [:]
    var finals: [LegID: Int] = [:]
    for action in world.actions {
      switch action {
      case .app(.send(let key, let message, let call)) where message.type.isTerminal: terminals["\(key) \(call)", default: 0] += 1
      case .sip(.answer(let leg, _)), .sip(.refuse(let leg, _, _, _, _)): finals[leg, default: 0] += 1
      default: break
      }
    }
    #expect(terminals.values.allSatisfy { $0 == 1 }, "seed \(seed)")
    #expect(finals.values.allSatisfy { $0 == 1 }, "seed \(seed)")
  }
}
