import AppServer
import Foundation
import Store
import Synchronization

/// Permits one import of contacts at a time: a list of a million needs tens of megabytes and seconds.
final class ImportSlots: Sendable {
  private let isRunning = Mutex(false)

  /// Nil: another import is under way.
  func claim() -> Slot? {
    isRunning.withLock { isRunning in
      guard !isRunning else { return nil }
      isRunning = true
      return Slot(self)
    }
  }

  /// Frees the slot when it is released, also with a connection that is lost in the middle.
  final class Slot: Sendable {
    private let slots: ImportSlots
    fileprivate init(_ slots: ImportSlots) { self.slots = slots }
    deinit { slots.isRunning.withLock { $0 = false } }
  }
}

/// The body of an import, read in pieces: memory holds the resulting list, and no more of the body than a line. If another import
/// is under way, the body is read and discarded, so that the answer, 429, reaches a client that writes before it reads.
///
/// Unchecked: on the server's thread until `finish`, then on the thread that sorts, and on the one that stores.
final class ContactImport: BodySink, @unchecked Sendable {
  private var slot: ImportSlots.Slot?
  private var reader: ContactReader?
  private var fault: APIError?

  init(_ slot: ImportSlots.Slot?, _ reader: ContactReader) {
    (self.slot, self.reader) = (slot, reader)
    guard slot == nil else { return }
    fail(APIError(.tooMany, "another import is running; nothing was changed: try again"))
  }

  func receive(_ octets: [UInt8]) {
    guard fault == nil else { return }
    do { try reader?.read(octets) } catch { fail(Self.refusal(error)) }
  }

  /// Drops the contacts read so far.
  private func fail(_ error: APIError) {
    (fault, reader) = (error, nil)
    release()
  }

  /// Frees the slot before the answer, for a client that sends the next import at once.
  func release() { slot = nil }

  private static func refusal(_ error: any Error) -> APIError { APIError(.badRequest, "\(error); nothing was changed") }

  /// Called once, after the last `receive`. `then` is called on a separate thread, or at once if there is nothing to sort.
  func finish(_ then: @escaping @Sendable (Result<ContactList, APIError>) -> Void) {
    if let fault { return then(.failure(fault)) }
    Thread.detachNewThread { [self] in
      do {
        let list = try reader?.finish() ?? ContactList()
        reader = nil
        then(.success(list))
      } catch {
        release()
        then(.failure(Self.refusal(error)))
      }
    }
  }
}
