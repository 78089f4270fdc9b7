import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

/// Click-to-call through the whole control plane: a program asks, two devices ring, the carrier is called when one has answered.
@Suite struct OriginateScenarioTests {
  private static let number = "+15557654321"

  private struct NotMade: Error {}

  private func originate(_ world: World, first: OriginateRequest.First = .user) throws -> CallID {
    let answer = world.operate { .originate(.init(user: "alice", to: Self.number, first: first), $0) }
    guard case .originated(let call)? = answer else { throw NotMade() }
    return call
  }

  @Test func `the app rings, answers, hears the number ring and is connected; the INVITE comes after its media`() throws {
    let world = World()
    world.carrier.answers = [(.milliseconds(20), 180), (.milliseconds(40), 183), (.milliseconds(500), 200)]
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(300) }
    let tablet = world.app("tablet")
    let call = try originate(world)
    world.run(.milliseconds(200))
    #expect(world.sentINVITEs.isEmpty)
    world.run(.seconds(2))
    #expect(
      phone.received(call).filter { $0 != "call.update" } == [
        "call.offer", "call.progress trying", "call.progress ringing", "call.progress early", "call.connected",
      ])
    #expect(tablet.received(call) == ["call.offer", "call.cancel answeredElsewhere"])
    world.carrier.hangUp(try #require(world.carrier.inboundLeg))
    world.run(.seconds(1))
    Invariants.check(world)
    let record = try #require(world.records.first)
    #expect(try #require(record.times["gateOpen"]) <= #require(record.times["inviteSent"]))
  }

  @Test func `a killed app is woken, answers and is connected`() throws {
    let world = World()
    world.carrier.answers = [(.milliseconds(20), 180), (.milliseconds(300), 200)]
    let phone = world.killed("phone") { $0.answersAfter = .milliseconds(300) }
    let call = try originate(world)
    world.run(.seconds(4))
    #expect(phone.received(call).last == "call.connected", "\(phone.received(call))")
    #expect(world.operate { .command(call, .hangUp(.localEnd), $0) } == .done)
    world.run(.seconds(1))
    #expect(phone.received(call).last == "call.ended localEnd")
    Invariants.check(world)
  }

  @Test func `the number first: it is called at once, the app rings when it has answered and is connected`() throws {
    let world = World()
    world.carrier.answers = [(.milliseconds(20), 180), (.milliseconds(500), 200)]
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(300) }
    let call = try originate(world, first: .number)
    world.run(.milliseconds(400))
    #expect(world.sentINVITEs.count == 1 && phone.received(call).isEmpty)
    world.run(.seconds(3))
    #expect(phone.received(call).filter { $0 != "call.update" } == ["call.offer", "call.connected"])
    world.carrier.hangUp(try #require(world.carrier.inboundLeg))
    world.run(.seconds(1))
    Invariants.check(world)
    let record = try #require(world.records.first)
    #expect(try #require(record.times["numberAnswered"]) <= #require(record.times["gateOpen"]))
  }

  /// The user, the carrier and the program act at any time, in any order, or never: one record, one end for each device, nothing left.
  @Test(arguments: [100, 400, 1_000, nil] as [Int?], [(20, 200), (600, 200), (150, 486), (40_000, 200)])
  func `whoever ends it, and whenever`(answers: Int?, carrier: (after: Int, code: Int)) throws {
    for first in OriginateRequest.First.allCases { try end(answers, carrier, first) }
  }

  private func end(_ answers: Int?, _ carrier: (after: Int, code: Int), _ first: OriginateRequest.First) throws {
    for programEnds in [0, 1, 99, 100, 101, 130, 250, 390, 401, 700, 1_200, nil] as [Int?] {
      for userEnds in [50, 110, 140, 420, 1_050, nil] as [Int?] {
        let world = World()
        world.carrier.answers = [(.milliseconds(10), 180), (.milliseconds(carrier.after), carrier.code)]
        let phone = world.app("phone") { $0.answersAfter = answers.map { .milliseconds($0) } }
        world.app("tablet")
        let call = try originate(world, first: first)
        if let programEnds {
          world.after(.milliseconds(programEnds)) { world.operate { .command(call, .hangUp(.localEnd), $0) } }
        }
        if let userEnds {
          world.after(.milliseconds(userEnds)) {
            if phone.won.contains(call) { phone.end(call) } else { phone.send(.callReject(CallReject()), call: call) }
          }
        }
        world.run(.seconds(60))
        if world.records.isEmpty { world.operate { .command(call, .hangUp(nil), $0) } }
        Invariants.check(world)
        #expect(world.records.map(\.call) == [call], "\(first) first: program \(programEnds ?? -1), user \(userEnds ?? -1)")
      }
    }
  }
}
