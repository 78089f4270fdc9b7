import Foundation

/// The reading side: events behind a position, in order, while another thread writes. Blocks for what is not in memory; one thread.
///
///     let reader = EventReader(folder: folder)
///     let (events, isGap) = reader.read(after: position, most: 100)
public final class EventReader: @unchecked Sendable {
  // Touched by the thread that calls only.
  private let folder: EventFolder
  private var fd: Int32 = -1
  /// Of the open segment.
  private var first: UInt64 = 0
  private var offset: off_t = 0
  /// The last event before `offset`.
  private var position: UInt64 = 0

  public init(folder: String) { self.folder = EventFolder(path: folder) }
  deinit { if fd >= 0 { close(fd) } }

  public var epoch: String? { folder.epoch() }

  /// The oldest position that is kept, and the newest: (1, 0) if there is nothing.
  public var range: (oldest: UInt64, newest: UInt64) {
    let all = folder.segments()
    guard let oldest = all.first else { return (1, 0) }
    var newest = oldest.first - 1
    guard let last = all.last else { return (oldest.first, newest) }
    let reader = EventReader(folder: folder.path)
    newest = max(newest, last.first - 1)
    while let event = reader.read(after: newest, most: 1_000).events.last { newest = event.position }
    return (oldest.first, newest)
  }

  /// At most `most` events and about `Limits.readBytes` (256 KiB) behind `after`. `isGap`: some that came between are kept no longer.
  public func read(after: UInt64, most: Int) -> (events: [StoredEvent], isGap: Bool) {
    if fd < 0 || after != position, !find(after) { return ([], false) }
    var isGap = position > after
    var events: [StoredEvent] = []
    while events.isEmpty {
      let chunk = self.chunk()
      guard let end = chunk.lastIndex(of: 0x0a) else {
        let before = position
        guard next() else { break }
        isGap = isGap || position > before
        continue
      }
      var start = 0
      while start <= end, events.count < most, let stop = chunk[start...].firstIndex(of: 0x0a) {
        offset += off_t(stop + 1 - start)
        if let event = StoredEvent(chunk[start..<stop]) {
          position = event.position
          if event.position > after { events.append(event) }
        }
        start = stop + 1
      }
    }
    return (events, isGap)
  }

  /// Opens the segment that has the event behind `after`, or else the oldest that comes later.
  private func find(_ after: UInt64) -> Bool {
    let all = folder.segments()
    guard let segment = all.last(where: { $0.first <= after + 1 }) ?? all.first else { return false }
    guard open(segment) else { return false }
    // what is before it in this segment is read over
    if position < after {
      var isBehind = true
      while isBehind {
        let chunk = self.chunk()
        guard chunk.contains(0x0a) else { break }
        var start = 0
        while let stop = chunk[start...].firstIndex(of: 0x0a) {
          let space = chunk[start..<stop].firstIndex(of: 0x20) ?? stop
          let number = UInt64(String(decoding: chunk[start..<space], as: UTF8.self)) ?? 0
          guard number <= after else {
            isBehind = false
            break
          }
          (offset, position) = (offset + off_t(stop + 1 - start), max(position, number))
          start = stop + 1
        }
      }
    }
    return true
  }

  private func open(_ segment: EventFolder.Segment) -> Bool {
    let next = Glibc.open(segment.path, O_RDONLY | O_CLOEXEC)
    guard next >= 0 else { return false }
    if fd >= 0 { close(fd) }
    (fd, first, offset, position) = (next, segment.first, 0, segment.first - 1)
    return true
  }

  /// The segment after this one, if there is one: then this one grows no more, and all of it is read.
  private func next() -> Bool {
    guard let segment = folder.segments().first(where: { $0.first > first }) else { return false }
    // it may have grown between our read and the new file
    var status = stat()
    if fstat(fd, &status) == 0, status.st_size > offset, chunk().contains(0x0a) { return true }
    return open(segment)
  }

  private func chunk() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Limits.readBytes) { room, count in
      count = max(0, pread(fd, room.baseAddress, room.count, offset))
    }
  }
}
