import CallFlow
import CallModel
import Foundation
import Logging
import Synchronization
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform

@testable import RecordingFiles

/// The thread with its files, on a folder of its own.
@Suite struct RecorderTests {
  private final class Reports: Sendable {
    private let all = Mutex<[RecordingReport]>([])
    private let event: EventDescriptor
    init() throws { event = try EventDescriptor() }
    func add(_ report: RecordingReport) {
      all.withLock { $0.append(report) }
      event.signal()
    }
    /// Blocks until there are `count`.
    func wait(for count: Int) -> [RecordingReport] {
      while all.withLock({ $0.count }) < count {
        guard event.wait(milliseconds: 10_000) else { break }
        event.clear()
      }
      return all.withLock { $0 }
    }
  }

  private func folder() throws -> String {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("recordings-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }
  private func recording(_ name: String) -> CallRecording {
    let call = CallID(high: 1, low: 2)
    return CallRecording(
      call: call, file: name, tap: AudioTap(),
      facts: CallEventFacts(call: call, direction: .incoming, trunk: "carrier", from: "+1", to: "+2"))
  }
  private func recorder(_ path: String, _ reports: Reports, leastFree: Int64 = 0) throws -> Recorder {
    try Recorder(RecordingFolder(path: path, leastFree: leastFree), logger: Logger(label: "test")) { reports.add($0) }
  }
  private func speak(_ tap: AudioTap, frames: Int, _ value: Int16 = 1_000) {
    let samples = (0..<160).map { $0 % 16 < 8 ? value : -value }
    // ahead of the recorder's clock: however late it looks, it has no silence to add
    let start = MonotonicClock.now() + .seconds(3_600)
    for frame in 0..<frames {
      for direction in AudioDirection.allCases {
        let other = samples.map { direction == .trunkToApp ? $0 : $0 / 2 }
        tap.put(TappedFrame(direction, .narrowband, at: start + .milliseconds(20 * frame)), other)
      }
    }
  }

  @Test func `a WAV file has both sides as its channels, and its name only when it is whole`() throws {
    let path = try folder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let reports = try Reports()
    let recorder = try recorder(path, reports)
    let recording = recording("a.wav")
    speak(recording.tap, frames: 100)
    recorder.perform(.start(recording))
    recorder.perform(.stop(file: "a.wav", .callEnded))
    let report = try #require(reports.wait(for: 1).first)
    #expect(report.end == .callEnded && report.milliseconds == 2_000 && report.dropped == 0)
    recorder.stop()
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + "/a.wav")))
    #expect(bytes.count == report.bytes && bytes.count == 44 + 100 * 640)
    let left = try WAVFile.samples(of: bytes)
    #expect(left.count == 16_000 && left[0] == 1_000 && left[8] == -1_000)
    #expect(Int(bytes[46]) | Int(bytes[47]) << 8 == 500)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["a.wav"])
    #expect(try FileManager.default.attributesOfItem(atPath: path + "/a.wav")[.posixPermissions] as? Int == 0o640)
  }

  @Test func `less room than is to be left free: no recording begins, and it is told`() throws {
    let path = try folder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let reports = try Reports()
    let recorder = try recorder(path, reports, leastFree: .max)
    recorder.perform(.start(recording("a.ogg")))
    #expect(reports.wait(for: 1).map(\.end) == [.diskFull])
    recorder.stop()
    func value(_ name: String) -> Int64? {
      let family = recorder.metrics.first { $0.name == name }
      return if case .integer(let value)? = family?.snapshot().first?.value { value } else { nil }
    }
    #expect(value("trunkline_recording_minimum_free_bytes") == .max)
    #expect((value("trunkline_recording_free_bytes") ?? 0) > 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
  }

  @Test func `a file of that name is not written over; a call without a word has an empty file; a stop of nothing is nothing`()
    throws
  {
    let path = try folder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try Data("mine".utf8).write(to: URL(fileURLWithPath: path + "/a.wav"))
    let reports = try Reports()
    let recorder = try recorder(path, reports)
    recorder.perform(.start(recording("a.wav")))
    recorder.perform(.stop(file: "a.wav", .callEnded))
    recorder.perform(.start(recording("b.wav")))
    recorder.perform(.stop(file: "b.wav", .stopped))
    let all = reports.wait(for: 2)
    #expect(all.map(\.end) == [.failed, .stopped] && all.map(\.milliseconds) == [0, 0])
    recorder.stop()
    #expect(try String(contentsOfFile: path + "/a.wav", encoding: .utf8) == "mine")
  }

  @Test func `the end of the process closes what is open`() throws {
    let path = try folder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let reports = try Reports()
    let recorder = try recorder(path, reports)
    let recording = recording("a.ogg")
    speak(recording.tap, frames: 60)
    recorder.perform(.start(recording))
    recorder.stop()
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    // started or not when the end came: nothing unfinished is left
    #expect(names == ["a.ogg"] || names.isEmpty)
  }

  @Test func `what a killed process left is finished by the next start: sizes in WAV, the name, and what holds nothing is gone`()
    throws
  {
    let path = try folder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let torn = WAVFormat.header(rateHz: 16_000, dataBytes: 0) + [UInt8](repeating: 5, count: 1_003)
    try Data(torn).write(to: URL(fileURLWithPath: path + "/a.wav.part"))
    try Data(repeating: 1, count: 500).write(to: URL(fileURLWithPath: path + "/b.ogg.part"))
    try Data().write(to: URL(fileURLWithPath: path + "/c.ogg.part"))
    try Data("other".utf8).write(to: URL(fileURLWithPath: path + "/notes.part"))
    try recorder(path, Reports()).stop()
    #expect(try FileManager.default.contentsOfDirectory(atPath: path).sorted() == ["a.wav", "b.ogg", "notes.part"])
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + "/a.wav")))
    #expect(bytes.count == 44 + 1_000 && bytes.prefix(44) == WAVFormat.header(rateHz: 16_000, dataBytes: 1_000)[...])
  }

  @Test func `a folder that cannot be is said at the start`() throws {
    #expect(throws: RecordingFolderFault.self) { try recorder("/proc/no-such-folder", Reports()) }
  }
}
