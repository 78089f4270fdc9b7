import CallModel
import PhoneNumbers
import Trunking
import TrunklineAppProtocol
import TrunklineBytes

/// A number that a user may call, in the spelling that was checked. Only `CallMachine.outboundRule` makes one, and INVITE,
/// diversion, transfer and REFER accept nothing else. So no second reading of the dialled text reaches a trunk: the number is a
/// `DialledNumber`, or a user of the gateway on the direct route, which is no trunk.
struct AllowedNumber: Sendable, Equatable {
  /// E.164 where it is known; the id of a user without a number.
  let text: String
  fileprivate init(_ number: DialledNumber) { text = number.text }
  fileprivate init(user number: String) { text = number }
  /// The gateway itself; a call to it leads to `DirectDialogs` only.
  static let testCall = AllowedNumber(user: TestCall.handle)
}

extension CallMachine {
  enum RuleOutcome {
    case rule(Routing.OutboundRule, AllowedNumber)
    case refused(ErrorCode, Refusal.Reason, String?)
  }

  func outboundRule(_ number: DialledNumber, user id: String, _ now: Instant) -> RuleOutcome {
    outboundRule(Routing.Destination(number: number.text, dialled: number), user: id, now)
  }

  /// The route of a dialled number, if the user may use it. A user's allowance does not restrict calls to other users.
  func outboundRule(_ to: Routing.Destination, user id: String, _ now: Instant) -> RuleOutcome {
    let number = to.number
    if let dialled = to.dialled, to.isEmergency {
      // without a route the device has to dial: it knows its location, the gateway does not
      let rule = routing.rule(dialling: dialled.text, emergency: true)
      return rule.map { .rule($0, AllowedNumber(dialled)) } ?? .refused(.emergency, .emergency, Self.emergencyText)
    }
    if routing.isOwn(number, of: id) || to.isUser && number == id {
      return .refused(.forbidden, .ownNumber, "the user's own number")
    }
    let direct = routing.directRule(to)
    guard var rule = direct ?? routing.rule(dialling: number) else { return .refused(.notFound, .notFound, "no route") }
    let allowance = routing.user(id)?.allowance ?? UserAllowance()
    guard direct != nil || allowance.allows(number) else {
      return .refused(.forbidden, .userPrefix, "not a number this user may call")
    }
    if direct == nil {
      rule.choices.removeAll { choice in
        routing.trunk(choice.trunk).map { !keeps(number, on: $0, by: allowance, of: id) } ?? false
      }
      guard !rule.choices.isEmpty else { return .refused(.forbidden, .userPrefix, Self.otherNumber) }
    }
    guard hasRoom(id, allowance) else { return .refused(.tooMany, .userLimit, "max_calls") }
    guard direct == nil, let dialled = to.dialled else { return .rule(rule, AllowedNumber(user: number)) }
    return .rule(rule, AllowedNumber(dialled))
  }

  /// Whether the user may make another call.
  func hasRoom(_ user: String, _ allowance: UserAllowance) -> Bool {
    guard let most = allowance.calls else { return true }
    return most
      > calls.ids(of: user).count {
        calls[$0]?.isLive == true && calls[$0]?.isTest != true
          && (calls[$0]?.direction == .outgoing || calls[$0]?.isDivertedToNumber == true)
      }
  }

  /// Counts a call of the user; false: the user had as many in the last hour as allowed.
  mutating func consumeQuota(of user: String, _ now: Instant) -> Bool {
    quota.consume(user, most: routing.user(user)?.allowance.callsPerHour, at: now)
  }

  /// Advice to a caller where the operator carries no emergency calls.
  static let emergencyText =
    "emergency calls are not carried here: call this number from a mobile or fixed telephone, or with this device's own dialler"

  static let otherCaller = "from is not a number of this user"
  static let noCaller = "the user has no number to call from"

  static let otherNumber = "as the trunk's outgoing rules write it, it is another number, which this user may not call"

  /// Whether a trunk that is sent the number, written by its `outgoing` rules, can only read numbers in it that the user may
  /// call: each reading passes the checks that the number passed.
  func keeps(_ number: String, on trunk: Routing.Trunk, by allowance: UserAllowance, of user: String) -> Bool {
    guard let (whole, rest) = trunk.numbers.written(number) else { return true }
    func isForHelp(_ text: String) -> Bool {
      routing.isEmergency(text, of: user) || trunk.numbers.country.map { routing.isEmergency(text, in: $0) } ?? false
    }
    if isForHelp(whole) || isForHelp(rest) { return false }
    return trunk.numbers.readings(of: number).allSatisfy { read in
      allowance.allows(read) && routing.rule(dialling: read) != nil && !isForHelp(read)
    }
  }
}
