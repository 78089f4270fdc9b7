import ArgumentParser
import CommandSupport
import Peers
import TrunklineAudioCodecs
import TrunklineRTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Options of both `trunk` and `phone`: the audio they play, the received audio they keep, and how they report.
struct PeerOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Plays this file instead of the built-in sentence (PCM 16 bit, µ-law or A-law).", valueName: "wav"))
  var play: String?
  @Option(
    help: ArgumentHelp("The file for received audio; with several calls a number is put before the extension.", valueName: "wav"))
  var record: String?
  @Flag(name: .customLong("repeat"), help: "Plays over and over.") var repeats = false
  @Flag(help: "Prints one JSON object a line instead of text.") var events = false

  func samples(_ band: AudioBand = .narrowband) throws -> [Int16]? {
    guard let play else { return nil }
    do {
      return try WAVFile.recording(of: [UInt8](Data(contentsOf: URL(fileURLWithPath: play)))).samples(band)
    } catch {
      throw ValidationError("--play \(play): \(error)")
    }
  }

  func write(_ samples: [Int16], _ band: AudioBand = .narrowband, number: Int) throws {
    guard let record else { return }
    var path = record
    if number > 0 {
      let stem = path.hasSuffix(".wav") ? String(path.dropLast(4)) : path
      path = "\(stem)-\(number).wav"
    }
    try Data(WAVFile.bytes(of: samples, band)).write(to: URL(fileURLWithPath: path))
  }

  /// A file's text without white space around it.
  func text(ofFile path: String, option: String) throws -> String {
    do {
      let text = try String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8)
      return String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    } catch {
      throw ValidationError("\(option) \(path): cannot be read")
    }
  }

  func report(_ event: PeerEvent) { events ? Console.json(event.line) : Console.line(event.text) }
}
