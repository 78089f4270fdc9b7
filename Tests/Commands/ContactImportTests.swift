import AppServer
import Foundation
import Store
import Synchronization
import Testing

@testable import trunkline

@Suite struct ContactImportTests {
  private let slots = ImportSlots()

  private func begin(_ form: ContactReader.Form = .csv) -> ContactImport { ContactImport(slots.claim(), ContactReader(form)) }
  private func finish(_ body: ContactImport) -> Result<ContactList, APIError> {
    let done = DispatchSemaphore(value: 0)
    let out = Mutex<Result<ContactList, APIError>?>(nil)
    body.finish { result in
      out.withLock { $0 = result }
      done.signal()
    }
    done.wait()
    return out.withLock { $0 } ?? .failure(APIError(.server, "nothing"))
  }

  @Test func `one import at a time: the next is 429 with Retry-After whatever it sends, until the first is stored or lost`()
    throws
  {
    let first = begin()
    first.receive(Array("number,label,kind\n+15550000001,".utf8))
    for _ in 0..<16 {
      let next = begin()
      for _ in 0..<100 { next.receive([UInt8](repeating: 0x2c, count: 100_000)) }
      guard case .failure(let error) = finish(next) else {
        Issue.record("two at a time")
        return
      }
      #expect(error.code == .tooMany && error.response.headers.contains { $0.name == "Retry-After" })
    }
    first.receive(Array("Ann,\n".utf8))
    #expect(try finish(first).get().count == 1)
    #expect(slots.claim() == nil, "it is not stored yet")
    first.release()
    #expect(slots.claim() != nil)
  }

  @Test func `a connection that is lost in the middle, and a body with a fault, release their slot`() {
    var lost: ContactImport? = begin()
    lost?.receive(Array("number,label".utf8))
    lost = nil
    var bad: ContactImport? = begin(.jsonLines)
    bad?.receive(Array("{}\n{}\n".utf8))
    if let bad, case .failure(let error) = finish(bad) {
      #expect(
        error.code == .badRequest
          && error.message == #"line 1: is not {"number":"+…","label":"…","kind":"identify or block"}; nothing was changed"#)
    } else {
      Issue.record("a fault is taken")
    }
    bad = nil
    #expect(slots.claim() != nil && lost == nil)
  }
}
