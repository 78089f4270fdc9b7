import PhoneNumbers
import Trunking

/// A user's country, its number plan, and its emergency numbers.
extension Routing {
  /// Emergency numbers of a user whose region is not configured: those that many regions have. `country` replaces them by the region's.
  public static let usualEmergencyNumbers: Set<String> = ["112", "911", "999", "110", "118", "119", "000", "111"]

  /// A number as dialled in the user's country, else in that of all trunks for outgoing calls.
  ///
  /// Throws if the text is not a number that can be called. If trunks of several countries exist and the user has no country, a
  /// national number is refused rather than assumed to be of one of them.
  package func dialled(_ text: String, by user: String) throws(NumberRefusal) -> DialledNumber {
    let plans = plans(of: user)
    guard plans.count > 1 else { return try dialled(text, in: plans.first) }
    // the country of an emergency number does not matter
    for plan in plans { if let number = try? dialled(text, in: plan), number.kind == .emergency { return number } }
    return try DialledNumber(text, in: nil, emergency: furtherEmergencyNumbers(in: nil), isOneCountry: false)
  }

  /// A number as written in a region; nil: the region is not known.
  package func dialled(_ text: String, in plan: NumberPlan?) throws(NumberRefusal) -> DialledNumber {
    try DialledNumber(text, in: plan, emergency: furtherEmergencyNumbers(in: plan))
  }

  /// Compared as it is sent, and without the `+` that some dial pads put before everything.
  package func isEmergency(_ number: String, of user: String) -> Bool {
    let plans = plans(of: user)
    return plans.isEmpty ? isEmergency(number, in: nil) : plans.contains { isEmergency(number, in: $0) }
  }

  package func isEmergency(_ number: String, in plan: NumberPlan?) -> Bool {
    let plain = number.hasPrefix("+") ? String(number.dropFirst()) : number
    let further = furtherEmergencyNumbers(in: plan)
    return further.contains(number) || further.contains(plain) || plan?.isEmergency(plain) ?? false
  }

  private func furtherEmergencyNumbers(in plan: NumberPlan?) -> Set<String> {
    emergencyNumbers ?? (plan == nil ? Self.usualEmergencyNumbers : [])
  }

  private func plans(of id: String) -> [NumberPlan] { user(id)?.country.map { [$0] } ?? callingPlans }

  /// Finds the number plans of users without a country: that of the trunks for outgoing calls if all have the same, several if
  /// they differ. O(choices of all routes), which are many: to be called once for a routing, not for a call.
  package mutating func settle() {
    // the table is read now, and not while a call waits
    _ = NumberPlan.version
    let names = Set(outbound.flatMap { $0.choices.map(\.trunk) })
    let countries = trunks.filter { names.contains($0.name) }.map(\.numbers.country)
    let known = countries.compactMap(\.self)
    let different = known.reduce(into: [NumberPlan]()) { if !$0.contains($1) { $0.append($1) } }
    callingPlans = different.count > 1 || known.count == countries.count ? different : []
  }
}
