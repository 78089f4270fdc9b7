import CallFlow
import PhoneNumbers
import Trunking
import TrunklineAppProtocol
import TrunklineAudioCodecs
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSIPDialogs

/// How a trunk's calls behave: media, features that are offered, required and accepted, and how the trunk writes numbers.
extension ConfigurationParser {
  private static let codecNames: String = {
    let names = AudioEncoding.allCases.map(\.name)
    return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
  }()

  func media(_ trunk: Section, _ out: inout Routing.Trunk) {
    if trunk.has("codecs") {
      out.codecs = trunk.list("codecs", limit: 8, Self.codecNames) { .init(named: $0) }
      if Set(out.codecs).count != out.codecs.count { problem(trunk.path("codecs"), "names a codec twice") }
      if trunk.items("codecs", limit: 8).isEmpty { problem(trunk.path("codecs"), "is empty") }
    }
    out.mediaPeers = trunk.list("media_peers", limit: 1_000, "an address or a network such as 192.0.2.0/24") { .init($0) }
    out.sourcePolicy = trunk.choice("rtp_source", default: out.sourcePolicy)
    let preference = trunk.choice("prefer", default: TrunkPreference.transcode)
    out.prefersRelay = preference == .relay
    if let first = preference.first {
      let preferred = out.codecs.filter(first)
      if preferred.isEmpty { problem(trunk.path("prefer"), "\(preference.rawValue) needs \(preference.names) in codecs") }
      out.codecs = preferred + out.codecs.filter { !first($0) }
    }
    // With INFO, digits are no part of media: tones in the audio remain audio.
    let digits = trunk.value("dtmf", "auto, rfc4733, inband or info") { text -> DigitTransport?? in
      text == "info" ? .some(nil) : DigitTransport(rawValue: text)
    }
    if let digits { (out.sendsDigitsByInfo, out.digits) = (digits == nil, digits ?? .rfc4733) }
    out.srtp = trunk.choice("srtp", default: out.srtp)
    out.sendsKeysInClear = trunk.flag("srtp_without_tls", default: out.sendsKeysInClear)
    out.holdAudio = holdAudio(trunk) ?? out.holdAudio
  }

  /// `noise`, `silence`, or a WAV file.
  private func holdAudio(_ trunk: Section) -> HoldAudio? {
    switch trunk.string("hold_audio") {
    case nil: return nil
    case "noise": return .noise
    case "silence": return .silence
    default:
      guard let recording = audio(trunk, "hold_audio", limit: Limits.audioBytes) else { return nil }
      guard let clip = AudioClip(recording) else {
        problem(trunk.path("hold_audio"), "is shorter than 40 ms")
        return nil
      }
      return .clip(clip)
    }
  }

  /// The content of the WAV file that `key` names.
  func audio(_ section: Section, _ key: String, limit: Int) -> Recording? {
    guard let name = section.string(key), let bytes = section.fileContent(key, limit: limit) else { return nil }
    do throws(WAVFile.FormatError) {
      return try WAVFile.recording(of: bytes)
    } catch {
      problem(section.path(key), "\(resolve(name)): \(error)")
      return nil
    }
  }

  func rules(_ trunk: Section, _ defaults: TrunkRules) -> TrunkRules {
    var out = defaults
    out.reliability = trunk.choice("reliable", default: out.reliability)
    out.sessionTimer = sessionTimer(trunk)
    let hosts = trunk.list("redirect_hosts", limit: 16, "a host name or address") { $0.isEmpty ? nil : $0.lowercased() }
    let follows = trunk.value("redirects", "refuse or follow") { ["refuse": false, "follow": true][$0] } ?? false
    out.redirects = follows ? .follow(hosts: Set(hosts)) : .refuse
    out.trustsIdentity = trunk.flag("trust_identity", default: out.trustsIdentity)
    out.allowsTransfer = trunk.flag("transfers", default: out.allowsTransfer)
    out.marksPhones = trunk.flag("user_phone", default: out.marksPhones)
    let identity = trunk.section("identity")
    out.identityHeader = identity.choice("header", default: out.identityHeader)
    out.identityUser = identity.string("user") ?? out.identityUser
    out.extraFields = trunk.list(
      "headers", limit: Limits.extraFields, "a header field that the gateway does not write itself, as \"X-Name: value\""
    ) {
      .init($0)
    }
    out.parameters = trunk.list(
      "parameters", limit: Limits.extraFields, "the name of a header field that the gateway does not read or write itself"
    ) { CallParameters.isName($0) && TrunkRules.ExtraField("\($0): x") != nil ? $0 : nil }
    out.contactRewriting = trunk.choice("rewrite_contact", default: out.contactRewriting)
    return out
  }

  private func sessionTimer(_ trunk: Section) -> TrunkRules.SessionTimer? {
    let defaults = TrunkRules.SessionTimer()
    let least = trunk.integer("session_minimum", in: Limits.sessionSeconds, default: defaults.minimumSeconds)
    if trunk.value("session_timer", "off or seconds", { $0 == "off" || Int($0) != nil ? $0 : nil }) == "off" { return nil }
    let seconds = trunk.integer("session_timer", in: Limits.sessionSeconds, default: defaults.seconds)
    if seconds < least { problem(trunk.path("session_timer"), "is less than session_minimum, \(least)") }
    return .init(seconds: seconds, minimumSeconds: least)
  }

  // MARK: numbers

  func numberRules(_ trunk: Section) -> NumberRules {
    let row = trunk.section("numbers")
    return NumberRules(
      incoming: numberRules(row, "inbound"), outgoing: numberRules(row, "outbound"), caller: numberRules(row, "caller"),
      country: country(row))
  }

  /// A region or a calling code, and the operator's corrections of what is dialled there.
  func country(_ row: Section) -> NumberPlan? {
    var country = row.value("country", "a region such as DE, or its country code such as \"49\"") { NumberPlan(country: $0) }
    if let code = row.value("international", "digits such as \"00\"", { digits($0, 0...5) }) { country?.international = code }
    if let code = row.value("national", "digits such as \"0\"", { digits($0, 0...5) }) { country?.national = code }
    if let country, country.sharing.count > 1, row.string("country") == country.code {
      let others = country.sharing.dropFirst()
      problem(
        row.path("country"),
        "\"\(country.code)\" means \(country.region); write the region for one of the others: "
          + others.prefix(8).joined(separator: ", ") + (others.count > 8 ? ", and \(others.count - 8) more" : ""), .warning)
    }
    return country
  }

  private func digits(_ text: String, _ count: ClosedRange<Int>) -> String? {
    count.contains(text.utf8.count) && text.utf8.allSatisfy { (48...57).contains($0) } ? text : nil
  }

  private func numberRules(_ section: Section, _ key: String) -> [NumberRules.Rule] {
    section.items(key, limit: 100).compactMap { item in
      let row = Section(item.node, item.path, self)
      guard case .mapping = item.node else { return nil }
      let text = { (text: String) -> String? in
        text.utf8.count <= 20 && text.utf8.allSatisfy { (48...57).contains($0) || $0 == 43 || $0 == 42 || $0 == 35 } ? text : nil
      }
      return .init(
        prefix: row.value("prefix", "the beginning of a number", text) ?? "", strip: row.integer("strip", in: 0...20, default: 0),
        add: row.value("add", "digits", text) ?? "")
    }
  }
}
