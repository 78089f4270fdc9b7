import Foundation
import Synchronization

/// The reading side: events after a position, in order, while another thread writes. Blocks for data that is not in memory; one
/// thread.
///
///     let reader = EventReader(folder: folder)
///     let (events, isGap) = reader.read(after: position, most: 100)
public final class EventReader: Sendable {
  private let folder: EventFolder
  private let segment: Mutex<SegmentReader>

  public init(folder path: String) {
    folder = EventFolder(path: path)
    segment = Mutex(SegmentReader(EventFolder(path: path)))
  }

  public var epoch: String? { folder.epoch() }

  /// The oldest stored position, and the newest: (1, 0) if there is none. Reads the end of the journal only, `Limits.readBytes`
  /// at most.
  public var range: (oldest: UInt64, newest: UInt64) {
    let all = folder.segments()
    guard let oldest = all.first, let last = all.last else { return (1, 0) }
    return (oldest.first, max(last.first - 1, SegmentReader.lastPosition(in: last.path) ?? 0))
  }

  /// At most `most` events and about `Limits.readBytes` (256 KiB) after `after`. `isGap`: some of those between are no longer
  /// stored.
  public func read(after: UInt64, most: Int) -> (events: [StoredEvent], isGap: Bool) {
    var (after, isGap) = (after, false)
    while true {
      let look = look(after: after, most: most, entries: most) { _, _ in true }
      isGap = isGap || look.isGap
      if !look.events.isEmpty || look.looked == 0 { return (look.events, isGap) }
      after = look.after
    }
  }

  /// The result of a scan of some entries of the journal.
  public struct Look: Sendable {
    public var events: [StoredEvent] = []
    /// The last entry that was read.
    public var after: UInt64
    public var looked = 0
    /// Some after the last one are no longer stored.
    public var isGap = false
  }

  /// Scans at most `entries` entries after `after`, and about `Limits.readBytes` of them, until `most` of them fit. `looked` is 0
  /// if there are no more. Nothing is copied of an entry that does not fit. Costs some milliseconds at most, whatever fits.
  public func look(after: UInt64, most: Int, entries: Int, fits: (_ kind: String, _ subject: String) -> Bool) -> Look {
    segment.withLock { $0.look(after: after, most: most, entries: entries, fits: fits) }
  }
}

/// The open segment, and how far it was read.
private struct SegmentReader: ~Copyable {
  private let folder: EventFolder
  private var fd: Int32 = -1
  /// Fields of the open segment.
  private var first: UInt64 = 0
  private var offset: off_t = 0
  /// The last event before `offset`.
  private var position: UInt64 = 0

  init(_ folder: EventFolder) { self.folder = folder }

  deinit { if fd >= 0 { close(fd) } }

  /// The position of a segment's last complete line; nil: it has none.
  static func lastPosition(in path: String) -> UInt64? {
    let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { return nil }
    // No line is as long: the last complete one, and the end of the one before it, are in these octets.
    let octets = chunk(file, max(0, status.st_size - off_t(Limits.readBytes)))
    guard let end = octets.lastIndex(of: 0x0a) else { return nil }
    let start = octets[..<end].lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
    return position(of: octets[start..<end])
  }

  mutating func look(after: UInt64, most: Int, entries: Int, fits: (_ kind: String, _ subject: String) -> Bool)
    -> EventReader.Look
  {
    var look = EventReader.Look(after: after)
    if fd < 0 || after != position, !find(after) { return look }
    look.isGap = position > after
    while look.looked == 0 {
      let chunk = Self.chunk(fd, offset)
      guard let end = chunk.lastIndex(of: 0x0a) else {
        let before = position
        guard next() else { break }
        look.isGap = look.isGap || position > before
        continue
      }
      var start = 0
      while start <= end, look.events.count < most, look.looked < entries, let stop = chunk[start...].firstIndex(of: 0x0a) {
        offset += off_t(stop + 1 - start)
        if let line = EventLine(chunk[start..<stop]) {
          position = line.position
          if line.position > after {
            look.looked += 1
            look.after = line.position
            if fits(line.kind, line.subject) { look.events.append(line.event) }
          }
        }
        start = stop + 1
      }
      if most == 0 || entries == 0 { break }
    }
    return look
  }

  /// Opens the segment that contains the event after `after`, or else the oldest later one, and finds the position in it in a few
  /// reads.
  private mutating func find(_ after: UInt64) -> Bool {
    let all = folder.segments()
    guard let segment = all.last(where: { $0.first <= after + 1 }) ?? all.first else { return false }
    guard open(segment) else { return false }
    guard position < after else { return true }
    offset = lastLine(at: after)
    // Lines before it are skipped.
    while true {
      let chunk = Self.chunk(fd, offset)
      guard chunk.contains(0x0a) else { return true }
      var start = 0
      while let stop = chunk[start...].firstIndex(of: 0x0a) {
        let number = Self.position(of: chunk[start..<stop]) ?? 0
        guard number <= after else { return true }
        (offset, position) = (offset + off_t(stop + 1 - start), max(position, number))
        start = stop + 1
      }
    }
  }

  /// The offset of a line at or before this position, at most `Limits.readBytes` before the first line after it: positions grow,
  /// so a binary search finds it.
  private func lastLine(at after: UInt64) -> off_t {
    var status = stat()
    guard fstat(fd, &status) == 0 else { return 0 }
    var (low, high) = (off_t(0), status.st_size)
    while high - low > off_t(Limits.readBytes) {
      let middle = low + (high - low) / 2
      let chunk = Self.chunk(fd, middle)
      // A line is shorter than a chunk: one begins here, unless this is the end.
      guard let first = chunk.firstIndex(of: 0x0a), let number = Self.position(of: chunk[(first + 1)...]), number <= after else {
        high = middle
        continue
      }
      low = middle + off_t(first + 1)
    }
    return low
  }

  /// The position of a line, which may be incomplete; nil: it has none.
  private static func position(of line: ArraySlice<UInt8>) -> UInt64? {
    line.firstIndex(of: 0x20).flatMap { UInt64(String(decoding: line[..<$0], as: UTF8.self)) }
  }

  private mutating func open(_ segment: EventFolder.Segment) -> Bool {
    let next = Glibc.open(segment.path, O_RDONLY | O_CLOEXEC)
    guard next >= 0 else { return false }
    if fd >= 0 { close(fd) }
    (fd, first, offset, position) = (next, segment.first, 0, segment.first - 1)
    return true
  }

  /// Opens the next segment, if there is one: then this one grows no longer, and was read completely.
  private mutating func next() -> Bool {
    guard let segment = folder.segments().first(where: { $0.first > first }) else { return false }
    // It may have grown between our read and the new file.
    var status = stat()
    if fstat(fd, &status) == 0, status.st_size > offset, Self.chunk(fd, offset).contains(0x0a) { return true }
    return open(segment)
  }

  private static func chunk(_ file: Int32, _ offset: off_t) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Limits.readBytes) { room, count in
      count = max(0, pread(file, room.baseAddress, room.count, offset))
    }
  }
}
