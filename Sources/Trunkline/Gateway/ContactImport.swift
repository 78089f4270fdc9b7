import AppServer
import Foundation
import Store
import Synchronization
import WebServer

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
final class ContactImport: BodySink {
  private struct State {
    var slot: ImportSlots.Slot?
    var reader: ContactReader?
    var fault: APIError?

    /// Drops the contacts read so far.
    mutating func fail(_ error: APIError) { (fault, reader, slot) = (error, nil, nil) }
  }
  private let state: Mutex<State>

  init(_ slot: ImportSlots.Slot?, _ reader: ContactReader) {
    var state = State(slot: slot, reader: reader)
    if slot == nil { state.fail(APIError(.tooMany, "another import is running; nothing was changed: try again")) }
    self.state = Mutex(state)
  }

  func receive(_ octets: [UInt8]) {
    state.withLock { state in
      guard state.fault == nil else { return }
      do { try state.reader?.read(octets) } catch { state.fail(Self.refusal(error)) }
    }
  }

  /// Frees the slot before the answer, for a client that sends the next import at once.
  func release() { state.withLock { $0.slot = nil } }

  private static func refusal(_ error: any Error) -> APIError { APIError(.badRequest, "\(error); nothing was changed") }

  /// Called once, after the last `receive`. `then` is called on a separate thread, or at once if there is nothing to sort.
  func finish(_ then: @escaping @Sendable (Result<ContactList, APIError>) -> Void) {
    if let fault = state.withLock({ $0.fault }) { return then(.failure(fault)) }
    Thread.detachNewThread { [self] in
      do {
        let list = try sorted()
        then(.success(list))
      } catch {
        release()
        then(.failure(Self.refusal(error)))
      }
    }
  }

  private func sorted() throws -> ContactList {
    try state.withLock { state in
      defer { state.reader = nil }
      return try state.reader?.finish() ?? ContactList()
    }
  }
}
