import CallModel
import TrunklineAppProtocol

/// A diversion that the call machine is to carry out, or what the call ends with if it cannot.
struct PlannedDiversion {
  var trigger: DiversionTrigger
  var rule: Diversions.Rule
  var ending: Call.Ending

  /// The reason for devices that had no part in the end.
  var reasonForDevices: EndReason {
    if case .recording(let file) = rule.target, file.isMissed { ending.others ?? ending.reason } else { .diverted }
  }
}

/// The number that a call is diverted to.
struct DiversionTarget {
  let number: AllowedNumber
  /// A number of the user for whom the leg is made.
  let ownNumber: String
  let showsCaller: Bool
  let planned: PlannedDiversion
}
