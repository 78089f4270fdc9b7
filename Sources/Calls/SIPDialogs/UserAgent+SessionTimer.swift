import TrunklineBytes
import TrunklineSIP

/// Session timers (RFC 4028), both roles.
///
/// | role | half of the interval | a third, at most 32 s, before its end |
/// |---|---|---|
/// | refresher | UPDATE if the peer allows it, else re-INVITE | BYE: no refresh has come through |
/// | other | – | BYE: none has come |
///
/// Each 2xx to INVITE or UPDATE restarts the interval; one without Session-Expires ends the timer (§7.2).
extension UserAgent {
  /// The timer that follows from a request's Session-Expires (§9); `now` is the active timer. Throws 422.
  func agreement(_ message: Message, replacing now: SessionTimer?, on trunk: String) throws(Refused) -> SessionAgreement {
    guard let rule = rules(trunk).sessionTimer else { return SessionAgreement() }
    let wanted: SessionExpires?
    let minimum: Int
    do throws(ParseError) {
      wanted = try message.sessionExpires
      minimum = try message.minimumSessionSeconds ?? Limits.sessionSeconds
    } catch {
      throw Refused(error.status)
    }
    let supports = message.lists("timer", in: .supported) || message.lists("timer", in: .require)
    guard wanted != nil || supports else { return SessionAgreement() }
    if let wanted, wanted.seconds < rule.minimumSeconds, supports {
      throw Refused(422, [(.minSE, String(rule.minimumSeconds))])
    }
    let seconds = max(min(wanted?.seconds ?? rule.seconds, rule.seconds), minimum, rule.minimumSeconds)
    // A requester that can refresh does so unless it states otherwise; in an active call the roles do not change (§7.4).
    var refresher = wanted?.refresher ?? (now?.isRefresher == true ? .uas : .uac)
    if !supports { refresher = .uas }
    var out = SessionAgreement(timer: SessionTimer(seconds: seconds, isRefresher: refresher == .uas))
    if refresher == .uac { out.fields.append((.require, "timer")) }
    out.fields.append((.sessionExpires, SessionExpires(seconds: seconds, refresher: refresher).text))
    return out
  }

  /// The Min-SE that our requests start with: that of RFC 4028 §4, or less in a lab.
  func leastSession(_ trunk: String) -> Int {
    min(Limits.sessionSeconds, rules(trunk).sessionTimer?.minimumSeconds ?? Limits.sessionSeconds)
  }

  /// Session-Expires and Min-SE of a request of ours inside the dialog: the same interval and roles.
  func sessionFields(_ leg: Leg) -> [(HeaderName, String)] {
    guard rules(leg.trunk).sessionTimer != nil, let session = leg.session.timer else { return [] }
    let value = SessionExpires(seconds: session.seconds, refresher: session.isRefresher ? .uac : .uas)
    return [(.sessionExpires, value.text), (.minSE, String(leg.session.minimum))]
  }

  /// The timer that a 2xx to our INVITE, re-INVITE or UPDATE sets.
  mutating func acceptSession(_ id: LegID, response message: Message) {
    guard let leg = legs[id]?.value else { return }
    legs[id]?.value.session.received(message)
    guard let rule = rules(leg.trunk).sessionTimer, let expires = (try? message.sessionExpires) ?? nil else {
      return startSession(id, nil)
    }
    let seconds = max(expires.seconds, min(rule.minimumSeconds, Limits.sessionSeconds))
    startSession(id, SessionTimer(seconds: seconds, isRefresher: expires.refresher != .uas))
  }

  mutating func startSession(_ id: LegID, _ timer: SessionTimer?) {
    guard let leg = legs[id]?.value else { return }
    legs[id]?.value.session.start(timer, isEnding: leg.phase == .ending, of: id, &step)
  }

  /// Half of the interval has passed.
  mutating func refresh(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed, leg.session.isRefresher else { return }
    // An offer of ours is open: its 2xx refreshes, too.
    if leg.offers.isOurOfferOpen { return leg.session.refreshLater(of: id, &step) }
    guard leg.session.peerAllowsUpdate, legs[id]?.value.offers.begin(.update) == true else { return wantOffer(id) }
    sendInDialog(.update, .update, on: id, RequestContent(fields: sessionFields(leg), refreshesTarget: true))
  }

  /// No refresh came in time (§10).
  mutating func sessionEnded(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed || leg.phase == .answered else { return }
    step.emit(.sessionLost(id, .expired))
    sendBye(id, .sip(408, "Session expired"))
  }

  /// A 422 to our refresh or INVITE: the interval grows to the peer's minimum (§7.3). False if that is not larger.
  mutating func raiseSession(_ id: LegID, _ message: Message?) -> Bool {
    guard let minimum = (try? message?.minimumSessionSeconds) ?? nil else { return false }
    return legs[id]?.value.session.raise(to: minimum) ?? false
  }
}
