import CallModel
import TrunklineAppProtocol

/// Where a call is diverted if no device answers, and where it was diverted.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | idle | `plan`, with a rule for the trigger | planned | the diversion that the machine is to carry out |
/// | idle | `plan` without a rule | idle | nil: the call ends |
/// | planned | `plan` | planned | nil |
/// | planned | `begin` | idle, or plays a recording | – |
/// | any | `refuse`, `continues` | same | – |
/// | any | `cancel`: the call ends | idle, or still plays | – |
struct CallDiversions {
  private(set) var rules = Diversions()
  private(set) var made: [CallRecord.Diversion] = []
  /// A diversion that is about to begin.
  private(set) var planned: PlannedDiversion?
  /// The recording that is played instead of an answer by a device.
  private(set) var recording: (planned: PlannedDiversion, file: Diversions.Recording)?
  /// The number of diversions that the INVITE states.
  private let stated: Int

  init(stated: Int = 0) { self.stated = stated }

  /// The call has another user, whose rules apply.
  mutating func adopt(_ rules: Diversions) { self.rules = rules }

  mutating func plan(_ trigger: DiversionTrigger, insteadOf ending: Call.Ending) -> PlannedDiversion? {
    guard planned == nil, let rule = rules.rules[trigger] else { return nil }
    planned = PlannedDiversion(trigger: trigger, rule: rule, ending: ending)
    return planned
  }

  /// - Parameter recording: it is played; nil: a user or a number has the call.
  mutating func begin(_ diversion: CallRecord.Diversion, playing recording: (PlannedDiversion, Diversions.Recording)?) {
    planned = nil
    made.append(diversion)
    if let recording { self.recording = recording }
  }

  /// A rule refuses the call with this code.
  mutating func refuse(_ trigger: DiversionTrigger, code: Int) {
    var diversion = CallRecord.Diversion(trigger)
    diversion.code = code
    made.append(diversion)
  }

  /// The leg to the number is repeated over another trunk.
  mutating func continues(over trunk: String, sipCallID: String?) {
    guard let last = made.indices.last else { return }
    (made[last].trunk, made[last].sipCallId) = (trunk, sipCallID)
  }

  mutating func cancel() { planned = nil }

  /// The limit counts the diversions of the INVITE and ours, but no recordings and codes.
  var isTooMany: Bool { stated + made.count { $0.user != nil || $0.number != nil } >= Limits.diversions }

  /// Earlier diversions than the present one and these, which are listed.
  func unlisted(beside listed: Int) -> Int { max(0, stated + made.count - 1 - listed) }
}
