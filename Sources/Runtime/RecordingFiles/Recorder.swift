public import CallModel
import Glibc
public import Logging
import Synchronization
import TrunklineBytes
import TrunklineMediaSession
public import TrunklinePlatform

/// The folder of recordings.
public struct RecordingFolder: Sendable, Equatable {
  /// Absolute path.
  public var path: String
  /// Octets of the file system that stay free; a recording that would use them ends.
  public var leastFree: Int64
  public init(path: String, leastFree: Int64) { (self.path, self.leastFree) = (path, leastFree) }
}

/// Writes the audio of calls to files, on its own thread, which reads the taps ten times a second.
///
///     let recorder = try Recorder(folder, logger: logger) { report in inbox.post(.recorded(report)) }
///     recorder.perform(.start(recording))      // any thread
///     recorder.perform(.stop(file: …, .callEnded))
///     recorder.stop()                          // closes the open files
///
/// An unfinished file has the suffix `.part`; a whole one has its name. The next start finishes the files of a killed process. A
/// full or slow disk costs recordings, never calls: media threads write into taps that drop frames when they are full.
public final class Recorder: Sendable {
  private let folder: RecordingFolder
  private let mailbox: Mailbox<RecordingCommand>
  private let statistics = RecorderMetrics()
  private let isOver = Atomic<Bool>(false)
  private let thread = Mutex<NamedThread?>(nil)
  /// Stops that the full mailbox refused; at most as many as there are recordings and waiting starts.
  private let late = Mutex<[RecordingCommand]>([])
  private let closed: @Sendable (RecordingReport) -> Void
  private let logger: Logger

  /// Makes the folder if it is missing, finishes leftover files, and starts the thread. `closed` is called once for each
  /// recording, on that thread. Throws if no file can be made in the folder.
  public init(
    _ folder: RecordingFolder, logger: Logger, closed: @escaping @Sendable (RecordingReport) -> Void
  ) throws(RecordingFolderFault) {
    (self.folder, self.logger, self.closed) = (folder, logger, closed)
    statistics.leastFree.set(folder.leastFree)
    mkdir(folder.path, 0o750)
    guard access(folder.path, W_OK | X_OK) == 0 else { throw RecordingFolderFault(folder.path, errno) }
    for name in Leftovers.finish(in: folder.path) {
      logger.notice("a recording of a killed process is finished", metadata: ["file": "\(name)"])
    }
    do throws(SystemError) {
      mailbox = try Mailbox(capacity: Limits.commands)
      let running = try NamedThread.start(name: "recorder", nice: 5, logger: logger) { [self] in run() }
      thread.withLock { $0 = running }
    } catch { throw RecordingFolderFault(folder.path, error.code) }
  }

  /// Any thread. If the queue is full, a start is reported as failed at once, without a file; a stop is never lost.
  public func perform(_ command: RecordingCommand) {
    guard !mailbox.post(command) else { return }
    switch command {
    case .start(let recording): refuse(recording, .failed)
    case .stop: late.withLock { $0.append(command) }
    }
  }

  /// Closes all files; returns when the thread has ended.
  public func stop() {
    isOver.store(true, ordering: .releasing)
    mailbox.event.signal()
    thread.withLock { $0 }?.join()
  }

  public var metrics: [MetricFamily] { statistics.families }
  public var queue: MailboxReading { mailbox.reading("recorder") }

  // MARK: the thread

  /// A class for each writer, as a dictionary holds no noncopyable value.
  private final class Entry {
    var writer: RecordingWriter
    init(_ writer: consuming RecordingWriter) { self.writer = writer }
  }

  private func run() {
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    var entries: [String: Entry] = [:]
    var commands: [RecordingCommand] = []
    var look = Instant.zero
    _ = hasRoom()
    while !isOver.load(ordering: .acquiring) {
      mailbox.wait(into: &commands, timeout: entries.isEmpty ? Limits.idleLook : Limits.interval, heartbeat: heartbeat)
      commands += late.withLock { late in
        defer { late = [] }
        return late
      }
      for command in commands {
        switch command {
        case .start(let recording): start(recording, &entries)
        case .stop(let file, let end): finish(file, end, &entries)
        }
      }
      commands.removeAll(keepingCapacity: true)
      let now = MonotonicClock.now()
      var isFull = false
      if now >= look {
        look = now + .seconds(1)
        isFull = !hasRoom()
      }
      for (file, entry) in entries {
        heartbeat.woke()
        if isFull { finish(file, .diskFull, &entries) } else { step(file, entry, at: now, &entries) }
      }
    }
    for file in entries.keys { finish(file, .stopped, &entries) }
  }

  private func step(_ file: String, _ entry: Entry, at now: Instant, _ entries: inout [String: Entry]) {
    do throws(SystemError) {
      try entry.writer.step(at: now)
    } catch {
      logger.error("a recording ends", metadata: ["file": "\(file)", "why": "\(error)"])
      finish(file, error.isDiskFull ? .diskFull : .failed, &entries)
    }
  }

  private func start(_ recording: CallRecording, _ entries: inout [String: Entry]) {
    guard entries.count < Limits.recordings, entries[recording.file] == nil else { return refuse(recording, .failed) }
    guard hasRoom() else { return refuse(recording, .diskFull) }
    do throws(SystemError) {
      entries[recording.file] = Entry(try RecordingWriter(recording, folder: folder.path))
      statistics.running.set(Int64(entries.count))
    } catch {
      logger.error("no recording", metadata: ["file": "\(recording.file)", "why": "\(error)"])
      refuse(recording, error.isDiskFull ? .diskFull : .failed)
    }
  }

  private func finish(_ file: String, _ end: RecordingReport.End, _ entries: inout [String: Entry]) {
    guard let entry = entries.removeValue(forKey: file) else { return }
    statistics.running.set(Int64(entries.count))
    let report = entry.writer.finish(end)
    statistics.bytes.increment(by: UInt64(max(0, report.bytes)))
    self.report(report)
  }

  private func refuse(_ recording: CallRecording, _ end: RecordingReport.End) {
    report(RecordingReport(recording.facts, file: recording.file, end: end, milliseconds: 0, bytes: 0, dropped: 0))
  }

  private func report(_ report: RecordingReport) {
    statistics.closed[report.end].increment()
    statistics.dropped.increment(by: UInt64(max(0, report.dropped)))
    if report.end == .diskFull {
      logger.error("a recording ended as the disk is full", metadata: ["file": "\(report.file)"])
    }
    closed(report)
  }

  /// Also checked while nothing is recorded, so that the gauge shows a full disk before a recording begins.
  private func hasRoom() -> Bool {
    var status = statvfs()
    guard statvfs(folder.path, &status) == 0 else { return true }
    let free = Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    statistics.free.set(free)
    return free > folder.leastFree
  }
}

/// The folder of recordings cannot be used.
public struct RecordingFolderFault: Error, CustomStringConvertible {
  public let description: String
  init(_ path: String, _ code: Int32) {
    description = "recording.folder: no file can be made in \(path): \(String(cString: strerror(code)))"
  }
}
