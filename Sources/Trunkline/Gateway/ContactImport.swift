import AppServer
import Foundation
import Store
import Synchronization

/// One import of contacts at a time: a list of a million takes tens of megabytes and seconds, whoever else asks.
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

  /// Is given back when it goes, with the connection that is lost in the middle too.
  final class Slot: Sendable {
    private let slots: ImportSlots
    fileprivate init(_ slots: ImportSlots) { self.slots = slots }
    deinit { slots.isRunning.withLock { $0 = false } }
  }
}

/// The body of an import, read as it comes: in memory is the list that comes of it, and no more of the body than a line. An import that finds
/// another one under way is read over, so that its answer, 429, arrives at a client that writes before it reads.
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

  /// What was read until then is let go.
  private func fail(_ error: APIError) {
    (fault, reader) = (error, nil)
    release()
  }

  /// The next import may begin: before the answer, for a client that asks again at once.
  func release() { slot = nil }

  private static func refusal(_ error: any Error) -> APIError { APIError(.badRequest, "\(error); nothing was changed") }

  /// Once, behind the last `take`. `then` is called on a thread of its own, or at once where there is nothing to sort.
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
