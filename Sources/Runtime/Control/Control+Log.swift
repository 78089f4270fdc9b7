import CallFlow
import CallModel
import Logging
import Trunking
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// Control's log for an operator. Numbers are masked unless the configuration says `log: { numbers: full }`.
extension Control {
  func log(_ record: CallRecord) {
    guard logger.logLevel <= .info else { return }
    var metadata: Logger.Metadata = [
      "call": "\(record.call)", "direction": "\(record.direction.rawValue)", "trunk": "\(record.trunk)",
      "from": "\(shown(record.from))",
      "to": "\(shown(record.to))", "reason": "\(record.end.reason.rawValue)", "by": "\(record.end.by.rawValue)",
      "connected_ms": "\(record.connectedMs)",
    ]
    if let user = record.user { metadata["user"] = "\(user)" }
    if let sip = record.end.sip { metadata["sip"] = "\(sip)" }
    if let detail = record.end.detail { metadata["detail"] = "\(detail)" }
    logger.info("call ended", metadata: metadata)
  }

  /// Inputs that an operator must be notified of.
  func log(_ input: CallMachine.Input) {
    switch input {
    case .media(.trunkSourceRejected(let session, let source, let setting)):
      logger.warning(
        "RTP from an address that the trunk did not name is dropped",
        metadata: ["session": "\(session.raw)", "from": "\(source)", "allowed_by": "\(setting)"])
    case .media(.trunkStreamUnknown(let session, let payloadType, let source, let address)):
      logger.warning(
        "RTP of a payload type that was not agreed on is dropped",
        metadata: [
          "session": "\(session.raw)", "payload_type": "\(payloadType)", "ssrc": "\(String(source, radix: 16))",
          "from": "\(address)",
        ])
    case .media(.trunkSendsTones(let session)):
      logger.warning(
        "a trunk that agreed on telephone-event sends digits as tones alone, which are not read",
        metadata: ["session": "\(session.raw)", "remedy": "dtmf: inband"])
    case .setTrunk(let trunk, let isDisabled):
      logger.notice(
        isDisabled ? "trunk disabled by an operator: no new calls over it" : "trunk enabled by an operator",
        metadata: ["trunk": "\(trunk)"])
    default: break
    }
  }

  /// Each line ends a request of ours: there are no more lines than calls and registrations.
  func logChallenge(of trunk: String, realm: String) {
    logger.warning(
      "a challenge of another realm is not answered: if the trunk's realm has changed, change realm in its settings",
      metadata: ["trunk": "\(trunk)", "realm": "\(realm)"])
  }

  /// There are no more lines than requests inside calls.
  func log(_ request: UnansweredRequest, of call: CallID?) {
    var metadata: Logger.Metadata = [
      "call": "\(call.map { "\($0)" } ?? "")", "sip_call_id": "\(request.callID)", "trunk": "\(request.trunk)",
      "method": "\(request.method.name)", "to": "\(request.flow.transport) \(request.flow.remote)",
      "why": "\(request.failure.rawValue)",
    ]
    if let contact = request.contact { metadata["contact"] = "\(contact)" }
    logger.warning("a request inside a dialog had no response: the trunk may not have received it", metadata: metadata)
  }

  /// One line when the shared store has lost grants that this node serves, and one when it has them again.
  func logStaleGrants() {
    let lost = core.machine.lostGrants(at: loop.now)
    guard hasStaleGrants != (lost != nil) else { return }
    hasStaleGrants = lost != nil
    guard let lost else { return logger.notice("the shared store has all grants of this node again") }
    logger.warning(
      "the shared store has lost what login tokens granted, which is served from this node's copy: run trunkline users restore",
      metadata: ["users": "\(lost.users)", "oldest_seconds": "\(lost.age.milliseconds / 1_000)"])
  }

  func log(_ news: TrunkNews) {
    switch news {
    case .located(let trunk, let addresses):
      logger.info(
        "trunk located", metadata: ["trunk": "\(trunk)", "addresses": "\(addresses.map(\.description).joined(separator: " "))"])
    case .notLocated(let trunk):
      let why = core.machine.trunkStatus(trunk, at: loop.now)?.lookUp
      logger.warning(
        "no server found for a trunk", metadata: ["trunk": "\(trunk)", "why": "\(why ?? "its name has no usable record")"])
    case .unreached(let trunk, let addresses):
      logger.error(
        "no listener reaches a trunk: listen.sip has none of its transport and address family, or no route leads to it",
        metadata: ["trunk": "\(trunk)", "addresses": "\(addresses.map(\.description).joined(separator: " "))"])
    case .registered(let trunk, let seconds): logger.info("registered", metadata: ["trunk": "\(trunk)", "seconds": "\(seconds)"])
    case .registrationFailed(let trunk, let code, let retry):
      // our own findings have names, and do not use a code of the carrier
      let refusal = core.machine.trunkStatus(trunk, at: loop.now)?.lastRefusal
      let failure = refusal?.method == "REGISTER" ? refusal?.failure : nil
      var metadata: Logger.Metadata = ["trunk": "\(trunk)", "again_in_ms": "\(retry.milliseconds)"]
      if let failure { metadata["why"] = "\(failure.rawValue)" } else { metadata["sip"] = "\(code)" }
      logger.warning("registration failed", metadata: metadata)
    case .formerContactKept(let trunk, let contact, let code):
      logger.debug(
        "the registrar keeps the binding of an address that we had before: it ends with its time",
        metadata: ["trunk": "\(trunk)", "contact": "\(contact)", "sip": "\(code)"])
    case .serviceRouteRefused(let trunk):
      logger.warning(
        "the registrar's Service-Route is not followed: it is malformed or too long", metadata: ["trunk": "\(trunk)"])
    case .probed(let trunk, let isUp):
      logger.warning(
        isUp ? "a trunk answers OPTIONS again" : "a trunk stopped answering OPTIONS: it gets no calls",
        metadata: ["trunk": "\(trunk)"])
    case .breaker(let trunk, let isOpen):
      logger.warning(
        isOpen ? "calls over a trunk fail in a row: it gets no calls for a while" : "a trunk gets calls again",
        metadata: ["trunk": "\(trunk)"])
    }
  }

  func log(_ call: CallID, _ stage: CallStage, at: Instant, detail: String?) {
    guard logger.logLevel <= .debug else { return }
    logger.debug("call stage", metadata: ["call": "\(call)", "stage": "\(stage.rawValue)", "detail": "\(detail ?? "")"])
  }

  func log(_ refusal: Refusal) {
    // under overload there may be thousands a second: they are counted, and `checkPressure` logs the state once
    if refusal.reason == .signalling, RefusalReason(rawValue: refusal.detail ?? "")?.isOverload == true { return }
    let level = refusal.isRoutine ? Logger.Level.debug : .notice
    guard logger.logLevel <= level else { return }
    var metadata: Logger.Metadata = [
      "reason": "\(refusal.reason.rawValue)", "direction": "\(refusal.direction.rawValue)", "trunk": "\(refusal.trunk)",
      "detail": "\(refusal.detail ?? "")",
    ]
    if let device = refusal.caller.device {
      (metadata["user"], metadata["device"]) = ("\(device.user)", "\(device.device)")
    }
    if let number = refusal.caller.number { metadata["number"] = "\(shown(number))" }
    if let call = refusal.caller.call { metadata["call"] = "\(call)" }
    if refusal.reason == .signalling, RefusalReason(rawValue: refusal.detail ?? "")?.isEdgeFault == true {
      metadata["do"] = "let the edge set X-Trunkline-Trunk once, to the name of a trunk here (Deploy/kamailio/kamailio.cfg)"
    }
    logger.log(level: level, "call refused", metadata: metadata)
  }

  private func shown(_ number: String) -> String { masksNumbers ? masked(number) : number }
}
