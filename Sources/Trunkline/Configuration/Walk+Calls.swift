import Yams

extension Settings.Trunk {
  /// How the calls of a trunk behave: what is offered to it, demanded of it, and taken from it.
  public struct Calls: Sendable, Equatable {
    public enum Reliability: String, Sendable, CaseIterable { case off, supported, required }
    public enum Hold: String, Sendable, CaseIterable { case local, signal }
    public enum Digits: String, Sendable, CaseIterable { case auto, rfc4733, inband, info }
    public enum SRTP: String, Sendable, CaseIterable { case off, optional, required }
    public enum Redirects: String, Sendable, CaseIterable { case refuse, follow }

    /// `reliable`: provisional responses of RFC 3262.
    public var reliability = Reliability.supported
    /// `session_timer`: seconds that are asked for (RFC 4028); nil is `off`.
    public var sessionSeconds: Int? = 1_800
    /// `session_minimum`: the least that is taken.
    public var sessionMinimum = 90
    /// `hold`: an app's hold stays here, or is a re-INVITE.
    public var hold = Hold.local
    /// `dtmf`: how digits come from the trunk and go to it; `auto` is telephone-event where negotiated, else tones.
    public var digits = Digits.auto
    /// `redirects`: a 3xx ends the call, or is followed within the trunk's own hosts.
    public var redirects = Redirects.refuse
    /// `redirect_hosts`: further hosts of the trunk that a 3xx may name.
    public var redirectHosts: [String] = []
    /// `trust_identity`: P-Asserted-Identity, Diversion and History-Info are believed.
    public var trustsIdentity = false
    /// `transfers`: REFER and Replaces are served.
    public var allowsTransfer = false
    /// `late_offer`: INVITEs go without an offer.
    public var offersLate = false

    /// `srtp`: keys in the description (RFC 4568).
    public var srtp = SRTP.off
    /// `srtp_without_tls`: they go over UDP and TCP too, where everybody on the way can read them.
    public var srtpWithoutTLS = false

    /// `hold_audio`: what the trunk hears while the app holds.
    public enum HoldAudio: Sendable, Equatable {
      case noise, silence
      /// Samples at 8 kHz.
      case clip([Int16])
    }
    public var holdAudio = HoldAudio.noise
    /// `record_private_numbers`: a withheld number stays in journal and record.
    public var recordsPrivateNumbers = false
  }
}

extension Walk {
  func calls(_ trunk: Section, _ path: String) -> Settings.Trunk.Calls {
    var out = Settings.Trunk.Calls()
    func flag(_ key: String) -> Bool { trunk.flag(key, default: false) }
    out.reliability = trunk.choice("reliable", default: out.reliability)
    if trunk.value("session_timer", "off or seconds", { $0 == "off" || Int($0) != nil ? $0 : nil }) == "off" {
      out.sessionSeconds = nil
    } else if trunk.has("session_timer") {
      out.sessionSeconds = trunk.integer("session_timer", in: Limits.sessionSeconds, default: 1_800)
    }
    out.sessionMinimum = trunk.integer("session_minimum", in: Limits.sessionSeconds, default: out.sessionMinimum)
    if let seconds = out.sessionSeconds, seconds < out.sessionMinimum {
      problem(path + ".session_timer", "is less than session_minimum, \(out.sessionMinimum)")
    }
    out.hold = trunk.choice("hold", default: out.hold)
    out.digits = trunk.choice("dtmf", default: out.digits)
    out.redirects = trunk.choice("redirects", default: out.redirects)
    out.redirectHosts = trunk.list("redirect_hosts", limit: 16, "a host name or address") { $0.isEmpty ? nil : $0.lowercased() }
    (out.trustsIdentity, out.allowsTransfer, out.offersLate) = (flag("trust_identity"), flag("transfers"), flag("late_offer"))
    out.holdAudio = holdAudio(trunk) ?? out.holdAudio
    out.recordsPrivateNumbers = flag("record_private_numbers")
    (out.srtp, out.srtpWithoutTLS) = (trunk.choice("srtp", default: out.srtp), flag("srtp_without_tls"))
    return out
  }

  /// `noise`, `silence`, or a WAV file of 8 or 16 kHz, mono, 16 bit.
  private func holdAudio(_ trunk: Section) -> Settings.Trunk.Calls.HoldAudio? {
    switch trunk.string("hold_audio") {
    case nil: return nil
    case "noise": return .noise
    case "silence": return .silence
    default:
      guard let bytes = trunk.fileContent("hold_audio", limit: Limits.audioBytes) else { return nil }
      guard let samples = telephoneSamples(ofWAV: bytes), samples.count >= Limits.audioSamples else {
        problem(trunk.path("hold_audio"), "expected a WAV file of 8 or 16 kHz, mono, PCM 16 bit, of 40 ms at least")
        return nil
      }
      return .clip(samples)
    }
  }
}

/// The samples of a RIFF WAVE file at 8 kHz: PCM 16 bit, mono, of 8 or 16 kHz; nil for any other.
func telephoneSamples(ofWAV bytes: [UInt8]) -> [Int16]? {
  func word(_ at: Int) -> Int { at + 1 < bytes.count ? Int(bytes[at]) | Int(bytes[at + 1]) << 8 : 0 }
  func tag(_ at: Int) -> [UInt8] { at + 4 <= bytes.count ? Array(bytes[at..<at + 4]) : [] }
  guard tag(0) == Array("RIFF".utf8), tag(8) == Array("WAVE".utf8) else { return nil }
  var rate = 0
  var offset = 12
  while offset + 8 <= bytes.count {
    let (size, body) = (word(offset + 4) | word(offset + 6) << 16, offset + 8)
    if tag(offset) == Array("fmt ".utf8) {
      let kind = word(body) == 0xfffe ? word(body + 24) : word(body)
      guard kind == 1, word(body + 2) == 1, word(body + 14) == 16 else { return nil }
      rate = word(body + 4) | word(body + 6) << 16
    } else if tag(offset) == Array("data".utf8) {
      let data = bytes[body..<min(bytes.count, body + size)]
      let samples = stride(from: data.startIndex, to: data.endIndex - 1, by: 2).map { Int16(truncatingIfNeeded: word($0)) }
      return rate == 8_000 ? samples : rate == 16_000 ? halved(samples) : nil
    }
    offset = body + size + size % 2
  }
  return nil
}

/// Every second sample behind a half-band low-pass of 15 taps (−50 dB from 5 kHz on).
private func halved(_ samples: [Int16]) -> [Int16] {
  let taps = [-27.0, 0, 139, 0, -504, 0, 2_444, 4_096, 2_444, 0, -504, 0, 139, 0, -27]
  let sum = taps.reduce(0, +)
  return stride(from: 0, to: samples.count, by: 2).map { center in
    var value = 0.0
    for (k, tap) in taps.enumerated() where tap != 0 {
      let at = center + k - 7
      if at >= 0, at < samples.count { value += tap * Double(samples[at]) }
    }
    return Int16(max(-32_768, min(32_767, value / sum)))
  }
}
