import AppSessions
import CallModel
import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

/// STIR/SHAKEN: an external verifier attests the caller's identity (RFC 8224, RFC 8588). A call never fails because of it.
extension CallMachine {
  /// The verifier answered, or its deadline passed: the call is offered to the connected devices. Pushes have not waited for it.
  mutating func verified(_ id: CallID, _ attestation: String?, _ step: inout Step) {
    guard let call = calls[id], call.ringClock.isVerifying else { return }
    let present = call.users.ringing.flatMap { ringable($0, for: call) }
    change(id, &step) { $0.verified(attestation, present, &$1) }
  }
}

extension Call {
  /// Queries the verifier, if there is one and the INVITE has a `shaken` identity. False: there is nothing to wait for.
  mutating func startVerification(_ invite: InboundInvite, _ step: inout Step) -> Bool {
    let signed = parties.identities.filter(\.isWellFormed)
    guard step.configuration.verifiesIdentity, signed.contains(where: { $0.type == "shaken" }) else { return false }
    ringClock.verify(until: step.now + step.configuration.timers.verification)
    let caller = invite.assertedIdentity ?? invite.from
    let question = IdentityQuestion(
      identities: signed.map(\.text), from: caller.number, to: parties.calledNumber, date: invite.date)
    step.output.actions.append(.verify(id, question))
    return true
  }

  mutating func verified(_ attestation: String?, _ present: [DevicePresence], _ step: inout Step) {
    ringClock.verified()
    guard isUndecided else { return }
    parties.attest(attestation)
    mark(.verified, detail: parties.attestation ?? "no", &step)
    for device in present.prefix(Limits.devicesPerCall) { offer(to: device, &step) }
    if devices.isEmpty { endIfNoDeviceRings(&step) }
  }
}
