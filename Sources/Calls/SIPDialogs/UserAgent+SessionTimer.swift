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
  func agreement(_ message: Message, _ now: SessionTimer?, _ trunk: String) throws(Refused) -> SessionAgreement {
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
    guard rules(leg.trunk).sessionTimer != nil, let session = leg.session else { return [] }
    let value = SessionExpires(seconds: session.seconds, refresher: session.isRefresher ? .uac : .uas)
    return [(.sessionExpires, value.text), (.minSE, String(leg.minimumSession))]
  }

  /// The timer that a 2xx to our INVITE, re-INVITE or UPDATE sets.
  mutating func acceptSession(_ id: LegID, response message: Message) {
    guard let leg = legs[id]?.value else { return }
    if message.field(.allow) != nil { legs[id]?.value.peerAllowsUpdate = message.lists("UPDATE", in: .allow) }
    guard let rule = rules(leg.trunk).sessionTimer, let expires = (try? message.sessionExpires) ?? nil else {
      return startSession(id, nil)
    }
    let seconds = max(expires.seconds, min(rule.minimumSeconds, Limits.sessionSeconds))
    startSession(id, SessionTimer(seconds: seconds, isRefresher: expires.refresher != .uas))
  }

  mutating func startSession(_ id: LegID, _ timer: SessionTimer?) {
    guard let leg = legs[id]?.value else { return }
    legs[id]?.value.session = timer
    guard let timer, leg.phase != .ending else {
      timers.cancel(.leg(id, .refresh))
      return timers.cancel(.leg(id, .sessionEnd))
    }
    if timer.isRefresher {
      timers.schedule(.leg(id, .refresh), at: now + .seconds(timer.seconds / 2))
    } else {
      timers.cancel(.leg(id, .refresh))
    }
    timers.schedule(.leg(id, .sessionEnd), at: now + .seconds(timer.seconds - min(32, timer.seconds / 3)))
  }

  /// Half of the interval has passed.
  mutating func refresh(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed, leg.session?.isRefresher == true else { return }
    guard leg.ourOffer == nil else {
      // An offer of ours is open: its 2xx refreshes, too.
      return timers.schedule(.leg(id, .refresh), at: now + Interval.refreshRetry)
    }
    guard leg.peerAllowsUpdate else { return wantOffer(id) }
    legs[id]?.value.ourOffer = OurOffer(kind: .update)
    sendInDialog(.update, .update, id, RequestContent(fields: sessionFields(leg), refreshesTarget: true))
  }

  /// No refresh came in time (§10).
  mutating func sessionEnded(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed || leg.phase == .answered else { return }
    emit(.sessionLost(id, .expired))
    sendBye(id, .sip(408, "Session expired"))
  }

  /// A 422 to our refresh or INVITE: the interval grows to the peer's minimum (§7.3). False if that is not larger.
  mutating func raiseSession(_ id: LegID, _ message: Message?) -> Bool {
    guard let leg = legs[id]?.value, let minimum = (try? message?.minimumSessionSeconds) ?? nil, minimum > leg.minimumSession,
      minimum <= Limits.sessionSecondsMaximum
    else { return false }
    legs[id]?.value.minimumSession = minimum
    if let session = leg.session { legs[id]?.value.session?.seconds = max(session.seconds, minimum) }
    return true
  }
}
