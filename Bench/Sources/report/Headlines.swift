import Foundation

/// The figures that a newcomer asks for first, each beside the peer that the same run measures: at the top of
/// docs/benchmarks/index.md, and four of them in README.md between two marks. A figure that is worse than the peer's is listed as
/// well.
enum Headlines {
  private struct Headline {
    var text: String
    var row: String
    var peer: String?
    /// The name of the row in README.md; nil: it is not listed there.
    var readme: String?
  }

  private static let wanted = [
    Headline(
      text: "what Chromium hears of a carrier, clean network, PESQ", row: "Chromium, clean: PESQ trunk to app", peer: "Janus"),
    Headline(text: "… and the carrier of Chromium", row: "Chromium, clean: PESQ app to trunk", peer: "Janus"),
    Headline(
      text: "… mouth to ear", row: "Chromium, clean: mouth to ear, trunk to app", peer: "Janus",
      readme: "mouth to ear, clean network"),
    Headline(
      text: "Chromium at 5 % loss on the trunk, PESQ", row: "Chromium, 5 % loss on the trunk: PESQ trunk to app", peer: "Janus"),
    Headline(text: "… mouth to ear then", row: "Chromium, 5 % loss on the trunk: mouth to ear, trunk to app", peer: "Janus"),
    Headline(
      text: "Chromium at 5 % loss on its own network, PESQ", row: "Chromium, 5 % loss on the app's network: PESQ trunk to app",
      peer: "Janus", readme: "what Chromium hears at 5 % loss on its own network, PESQ"),
    Headline(text: "… and the carrier then", row: "Chromium, 5 % loss on the app's network: PESQ app to trunk", peer: "Janus"),
    Headline(
      text: "calls one core carries, PCMU ↔ Opus over DTLS-SRTP, every call whole",
      row: "steps: transcoded calls that one core carries", peer: "rtpengine",
      readme: "calls one core carries, PCMU ↔ Opus over DTLS-SRTP, every call whole"),
    Headline(text: "… and by CPU time", row: "steps: the same by CPU time", peer: "rtpengine"),
    Headline(
      text: "calls one core relays, RTP ↔ SRTP", row: "relay: calls per core", peer: "rtpengine",
      readme: "calls one core relays, RTP ↔ SRTP"),
    Headline(text: "delay the relay adds, median at 100 calls", row: "relay: added delay p50, 100 calls", peer: "rtpengine"),
    Headline(
      text: "SRTP, AES-128-GCM, 160 B, protect and unprotect", row: "SRTP_AEAD_AES_128_GCM, 160 B, protect + unprotect",
      peer: "libsrtp2"),
    Headline(
      text: "jitter buffer: put, decide, get a packet", row: "put + decide + get, packets in order: instructions", peer: "libre"),
    Headline(
      text: "20 ms of PCMU at 3 % loss decoded, concealed, stretched",
      row: "receive path PCMU, 3 % loss, jitter, reorder: instructions", peer: "NetEQ"),
    Headline(
      text: "3 % loss, 2 % reordered, spikes: send to play-out", row: "3 % loss, 2 % reorder, spikes: mean delay", peer: "NetEQ"),
    Headline(text: "… and packets that came too late to be heard", row: "3 % loss, 2 % reorder, spikes: late", peer: "NetEQ"),
    Headline(text: "trunk to app without loss, PESQ", row: "PESQ: trunk to app, 0 % loss", peer: "NetEQ"),
    Headline(text: "trunk to app at 5 % loss, PESQ", row: "PESQ: trunk to app, 5 % loss", peer: "NetEQ"),
    Headline(text: "app to trunk at 10 % loss, Opus with FEC, PESQ", row: "PESQ: app to trunk, 10 % loss", peer: "NetEQ"),
    Headline(text: "memory of a transcoded call", row: "load: memory of a call, transcoded"),
    Headline(
      text: "1.5 × capacity offered: packets kept by the worst admitted call",
      row: "load: 1.5 × capacity, kept by the worst admitted call"),
    Headline(text: "… and time to a refusal, p99", row: "load: time to a refusal, p99"),
  ]

  /// Results on other machines than the report's.
  static let remarks = """
    Of rtpengine's calls per core ours are a multiple that moves with the machine: transcoded 140 of 30 on one and 180 of 60 on another,
    3 to 4.7 times as many; relayed 1,318 of 756 and 2,836 of 1,878, 1.5 to 1.7 times. PESQ with its 95 % interval over voices, and our lead
    pair by pair, the same voice on the same losses; "equal" where the interval of the lead holds zero.

    """

  /// A table of the measured rows; the lines of a bench that did not run are omitted.
  /// - Parameter isReadme: only the rows of README.md.
  static func table(_ results: [BenchResults], isReadme: Bool = false) -> String {
    let rows = results.flatMap(\.rows)
    var out = "| | Trunkline | beside it |\n|---|---:|---:|\n"
    for headline in wanted where !isReadme || headline.readme != nil {
      guard let row = rows.first(where: { $0.row == headline.row }) else { continue }
      let peer = headline.peer.flatMap { name in row.others.first { $0.name.hasPrefix(name) } }
      func text(_ value: Double, _ half: Double?) -> String {
        "\(Number.text(value, plusMinus: half, of: row.unit))"
      }
      let beside = peer.map { "\($0.name) \(text($0.value, $0.half)) \(row.unit)" } ?? ""
      // "lead" means more of something good; more milliseconds are only a "difference".
      let word = row.unit == "MOS" ? "lead" : "difference"
      let lead = row.lead.map { peer == nil ? "" : $0 == "equal" ? ": equal" : ", \(word) \($0)" } ?? ""
      let doubt = row.note.contains("VOID") ? " (void: the load generator was late)" : ""
      let title = (isReadme ? headline.readme : nil) ?? headline.text
      out += "| \(title) | **\(text(row.ours, row.half))** \(row.unit)\(doubt) | \(beside)\(lead) |\n"
    }
    return out
  }

  /// Headlines whose row is in no result; if their bench ran, the row was renamed.
  static func lost(_ results: [BenchResults]) -> [String] {
    let rows = Set(results.flatMap(\.rows).map(\.row))
    return wanted.map(\.row).filter { !rows.contains($0) }
  }

  static let begin = "<!-- made by make bench -->"
  static let end = "<!-- until here -->"

  /// The text with the table between the marks; nil if it has no marks.
  static func inserted(in text: String, _ results: [BenchResults], _ machine: Machine) -> String? {
    guard let first = text.range(of: begin), let last = text.range(of: end, range: first.upperBound..<text.endIndex) else {
      return nil
    }
    func fact(_ key: String) -> String { machine.facts.first { $0.key == key }?.value ?? "" }
    let source = "\(fact("machine")), \(fact("date")), commit \(fact("commit"))"
    return text[..<first.upperBound] + "\n\(table(results, isReadme: true))\n*\(source); peers measured in the same run.*\n"
      + text[last.lowerBound...]
  }
}
