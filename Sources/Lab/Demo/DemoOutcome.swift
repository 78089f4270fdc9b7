import CallFlow
import CallModel
import CommandSupport
import Foundation
import Peers
import SpeechScore
import TrunklineAudioCodecs

typealias DemoRecord = CallRecord

/// The result of the demo call: its timeline, and the audio that each side received.
struct DemoOutcome {
  static let trunkFile = "heard-by-telephone.wav"
  static let appFile = "heard-by-app.wav"

  struct Hearing {
    let who: String
    let comparison: SpeechComparison?
    let delayMilliseconds: Double?
    let received: Int
    let lost: Int
    let meanOpinionScore: Double?
    let file: String
  }

  let record: DemoRecord?
  let toApp: Hearing
  let toTrunk: Hearing
  let lateness: MachineLateness
  private let carrier: [PeerEvent]
  private let phone: [PeerEvent]

  var bothHeardSpeech: Bool { [toApp, toTrunk].allSatisfy { $0.comparison?.heardSpeech == true } }

  /// The exit status of a demo without speech in both directions: 75 (EX_TEMPFAIL) if the machine, not the gateway, may be the
  /// cause.
  var failure: Int32? { bothHeardSpeech ? nil : lateness.isLate ? 75 : 1 }

  init(carrier: [PeerEvent], phone: [PeerEvent], record: DemoRecord?, lateness: MachineLateness, folder: URL) throws {
    (self.carrier, self.phone, self.record, self.lateness) = (carrier, phone, record, lateness)
    let ends = (
      carrier: carrier.last { $0.event == "ended" }?.fields ?? [:], phone: phone.last { $0.event == "ended" }?.fields ?? [:]
    )
    toApp = Self.hearing(
      "the app", file: Self.appFile, in: folder, spoken: PeerSpeech.telephone, speaker: ends.carrier, listener: ends.phone,
      score: record?.fromTrunk?.mos)
    toTrunk = Self.hearing(
      "the telephone", file: Self.trunkFile, in: folder, spoken: PeerSpeech.app, speaker: ends.phone, listener: ends.carrier,
      score: record?.fromApp?.mos)
  }

  private static func hearing(
    _ who: String, file: String, in folder: URL, spoken: [Int16], speaker: [String: String], listener: [String: String],
    score: Double?
  ) -> Hearing {
    let path = folder.appendingPathComponent(file)
    let heard = (try? Data(contentsOf: path)).flatMap { try? WAVFile.samples(of: [UInt8]($0)) } ?? []
    let comparison = SpeechComparison(played: spoken, heard: heard)
    var delay: Double?
    if let comparison, let spokenAt = Double(speaker["spokenAt"] ?? ""), let heardAt = Double(listener["heardAt"] ?? "") {
      delay = heardAt - spokenAt + comparison.delayMilliseconds
    }
    return Hearing(
      who: who, comparison: comparison, delayMilliseconds: delay, received: Int(listener["received"] ?? "") ?? 0,
      lost: Int(listener["lost"] ?? "") ?? 0, meanOpinionScore: score, file: path.path)
  }

  func print() {
    Console.line("\nTimeline, milliseconds from the INVITE:")
    for (at, text) in timeline { Console.line("  " + Self.padded(at, 9) + "  " + text) }
    Console.line("\nWhat each side heard:")
    for hearing in [toApp, toTrunk] { describe(hearing) }
    if let record {
      Console.line(
        "\nRecord: \(record.end.reason.rawValue) by \(record.end.by.rawValue), \(record.codecs.trunk ?? "?") ⇄ \(record.codecs.app ?? "?"), "
          + "\(record.srtp ?? "?")")
    } else {
      Console.line("\nNo record was written: see gateway.log")
    }
    Console.line("This machine: \(lateness)\(lateness.isLate ? ", too late for a call" : "").")
    Console.line(verdict)
  }

  /// The last line.
  var verdict: String {
    switch (bothHeardSpeech, lateness.isLate) {
    case (true, false): "Both sides heard speech."
    case (true, true):
      "Both sides heard speech; how well, says nothing about the gateway. Run it again when the machine has less to do."
    case (false, false): "NOT both sides heard speech."
    case (false, true): "VOID: not both sides heard speech, and the machine may be why. Run it again when it has less to do."
    }
  }

  private func describe(_ hearing: Hearing) {
    guard let comparison = hearing.comparison else { return Console.line("  \(hearing.who): nothing") }
    let what = "  \(hearing.who): \(comparison.heardSpeech ? "speech" : "no clear speech") · "
    // The machine would determine delay and sound.
    guard !lateness.isLate else {
      return Console.line(what + "\(hearing.received) packets, \(hearing.lost) lost\n    \(hearing.file)")
    }
    let score = hearing.meanOpinionScore.map { " · MOS \(Self.decimal($0))" } ?? ""
    Console.line(
      what + "delay \(hearing.delayMilliseconds.map { Self.decimal($0) } ?? "?") ms mouth to ear, both peers included · "
        + "\(hearing.received) packets, \(hearing.lost) lost · start clipped \(comparison.clippedStartMilliseconds) ms · "
        + "likeness \(Self.decimal(comparison.similarity * 100)) % · level \(Self.decimal(comparison.levelDifferenceDecibels)) dB\(score)"
    )
    Console.line("    \(hearing.file)")
  }

  /// Steps of the gateway's record, and the peers' events, in the order of their times.
  private var timeline: [(Double, String)] {
    let start = Double(record?.times[CallStage.start.rawValue] ?? 0)
    var rows: [(Double, String)] = []
    for (stage, text) in Self.stages {
      if let at = record?.times[stage.rawValue] { rows.append((Double(at) - start, text)) }
    }
    for (events, who) in [(carrier, "telephone"), (phone, "app")] {
      if let first = events.first(where: { $0.event == "firstAudio" }) {
        rows.append((first.at - start, "\(who) hears the first audio"))
      }
    }
    return rows.sorted { $0.0 < $1.0 }
  }

  private static let stages: [(CallStage, String)] = [
    (.start, "INVITE received"), (.offered, "call.offer to the app"), (.deviceRinging, "call.ringing from the app"),
    (.ringing, "180 sent"),
    (.prepared, "call.prepare: the app's answer is applied"), (.ice, "ICE: a pair is nominated"), (.dtls, "DTLS: keys installed"),
    (.mediaReady, "media.ready from the app"), (.tap, "tap on answer"), (.answered, "call.answer claims the lock"),
    (.gateOpen, "the media gate is open"), (.connected, "200 sent, call.connected"), (.acknowledged, "ACK received"),
    (.mediaActive, "media.active: the app's audio runs"), (.firstAudioToApp, "gateway forwards the first audio to the app"),
    (.firstAudioToTrunk, "gateway forwards the first audio to the telephone"), (.bye, "BYE"), (.ended, "ended"),
  ]

  private static func decimal(_ value: Double) -> String { String(Double((value * 10).rounded()) / 10) }
  private static func padded(_ value: Double, _ width: Int) -> String {
    let text = decimal(value)
    return String(repeating: " ", count: max(0, width - text.count)) + text
  }
}
