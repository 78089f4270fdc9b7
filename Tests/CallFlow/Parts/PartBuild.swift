import AppSessions
import PushPolicy
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

// One part of the machine or of a call alone: its inputs out of order, repeated, of another session, and none at all.

let alice = Surroundings.alice

func callID(_ number: Int) -> CallID { CallID(high: 1, low: UInt64(number)) }
func seconds(_ count: Double) -> Instant { .zero + .nanoseconds(Int64(count * 1e9)) }
func makeTrunk(_ name: String = "carrier", _ change: (inout Routing.Trunk) -> Void = { _ in }) -> Routing.Trunk {
  var trunk = Routing.Trunk(name: name, peer: Surroundings.peer)
  change(&trunk)
  return trunk
}

/// An incoming call with the session, leg and age of its number, that rings for these users.
func makeCall(_ number: Int, _ users: [String] = [alice]) -> Call {
  let session = MediaSessionID(raw: UInt64(number))
  var made = Call(
    id: callID(number), direction: .incoming, session: session, users: Call.Users(users[0], account: "default"),
    parties: Call.Parties(
      from: Handle(number: "+1", name: nil), to: Handle(number: "+2", name: nil), callerNumber: "+1", calledNumber: "+2"),
    trunkLeg: TrunkLeg(.inbound(UInt64(number)), over: makeTrunk(), session: session, phase: .invited), at: .zero)
  made.users.ring(for: users)
  return made
}

func makePresence(_ key: DeviceKey, _ session: String, only call: CallID? = nil) -> DevicePresence {
  DevicePresence(key: key, session: SessionID(session), info: DeviceInfo(onlyCall: call))
}

extension Step {
  static func at(_ time: Double, pushes: Bool = false) -> Step {
    var configuration = CallConfiguration()
    if pushes { configuration.push = PushSettings(gateway: "wss://gw.example/v1/connect", wakes: Surroundings.wakes) }
    return Step(now: seconds(time), configuration: configuration, random: .seeded(1), wallOffset: 0)
  }
}

/// As `#expect`, for a condition that changes a part: the macro cannot call mutating functions.
func holds(_ condition: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(condition, comment, sourceLocation: sourceLocation)
}
