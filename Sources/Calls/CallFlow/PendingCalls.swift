import AppSessions
import CallModel
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs

/// Calls that wait for media, which the next input answers, or for the cluster. A call waits for one answer at a time, and most do
/// not exist until they have it.
///
/// | waits for | `popReservation` | `popLocating` | `popClaim` |
/// |---|---|---|---|
/// | media | what continues, once | nil, it waits on | nil, it waits on |
/// | the location of its users | nil, it waits on | what continues, once | nil, it waits on |
/// | its claim | nil, it waits on | nil, it waits on | what continues, once |
/// | nothing | nil | nil | nil |
struct PendingCalls {
  /// What continues once media is reserved.
  enum Reservation {
    case incoming(Call)
    case outgoing(StartingCall)
    /// A call that a program makes for a user.
    case originated(Call, QuestionID)
    case stream(Call, StreamTarget)
    /// A call whose webhook has named its users.
    case asked
    /// The leg to the number that a call is diverted to.
    case diversion(DiversionPlan)
  }
  /// A call whose users' devices the cluster locates.
  struct Locating {
    var call: Call
    let user: String
    let toward: IPAddress
  }
  /// What continues once the cluster has the call's id and room for it.
  enum Claim {
    case outgoing(StartingCall)
    case originated(Call, QuestionID)
  }
  private enum Wait {
    case media(Reservation)
    case location(Locating)
    case claim(Claim)
  }

  private var waits: [CallID: Wait] = [:]

  var isEmpty: Bool { waits.isEmpty }
  func has(_ id: CallID) -> Bool { waits[id] != nil }

  // A later wait of a call replaces the earlier one.

  mutating func waitForMedia(_ id: CallID, then reservation: Reservation) { waits[id] = .media(reservation) }
  mutating func waitForLocation(_ locating: Locating) { waits[locating.call.id] = .location(locating) }
  mutating func waitForClaim(_ id: CallID, then claim: Claim) { waits[id] = .claim(claim) }

  mutating func popReservation(_ id: CallID) -> Reservation? {
    guard case .media(let reservation)? = waits[id] else { return nil }
    waits[id] = nil
    return reservation
  }

  mutating func popLocating(_ id: CallID) -> Locating? {
    guard case .location(let locating)? = waits[id] else { return nil }
    waits[id] = nil
    return locating
  }

  mutating func popClaim(_ id: CallID) -> Claim? {
    guard case .claim(let claim)? = waits[id] else { return nil }
    waits[id] = nil
    return claim
  }
}
