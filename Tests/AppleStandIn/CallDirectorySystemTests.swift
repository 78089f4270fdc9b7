import AppleStandIn
import Foundation
import Testing

/// R14: what iOS does with an extension's entries.
@Suite struct CallDirectorySystemTests {
  private typealias System = CallDirectorySystem
  private typealias Code = CXErrorCodeCallDirectoryManagerError.Code
  private let name = "example.directory"

  private func installed(_ change: (inout CallDirectoryRules) -> Void = { _ in }) -> System {
    var rules = CallDirectoryRules()
    change(&rules)
    var system = System(rules)
    system.install(name)
    return system
  }
  /// One request: `body` adds and removes.
  private func load(
    _ system: inout System, incremental: Bool = false, _ body: (inout System, System.RequestID) -> Void
  ) throws -> System.Outcome {
    let request = try system.begin(name)
    if incremental {
      let isIncremental = system.isIncremental(name, request)
      #expect(isIncremental)
    }
    body(&system, request)
    return system.complete(name, request)
  }
  private func failed(_ code: Code) -> System.Outcome { failed(code.rawValue) }
  private func failed(_ code: Int) -> System.Outcome {
    var system = installed()
    system.failNext(name, code: code)
    return (try? load(&system) { _, _ in }) ?? .expired
  }

  @Test func `R14, DIR-3: labels and blocks are looked up by number, without the extension`() throws {
    var system = installed()
    let outcome = try load(&system) { system, request in
      system.add(name, request, blocked: 15_550_000_001)
      system.add(name, request, blocked: 15_550_000_003)
      system.add(name, request, identified: 15_550_000_002, label: "Bank")
      system.add(name, request, identified: 15_550_000_003, label: "Spam")
    }
    #expect(outcome == .stored)
    #expect(system.match(15_550_000_001) == .init(label: nil, isBlocked: true))
    #expect(system.match(15_550_000_002) == .init(label: "Bank", isBlocked: false))
    #expect(system.match(15_550_000_003) == .init(label: "Spam", isBlocked: true))
    #expect(system.match(15_550_000_004) == .init(label: nil, isBlocked: false))
  }

  @Test func `R14: numbers that do not ascend are error 3, equal ones error 4, and nothing of the request is stored`() throws {
    for (second, code) in [(9, Code.entriesOutOfOrder), (10, .duplicateEntries), (0, .unknown), (Int64.max, .unknown)] {
      for list in System.List.allCases {
        var system = installed()
        let outcome = try load(&system) { system, request in
          for number in [10, second, 30] {
            if list == .blocking {
              system.add(name, request, blocked: number)
            } else {
              system.add(name, request, identified: number, label: "x")
            }
          }
        }
        #expect(outcome == failed(code), "\(second) after 10 in \(list)")
        #expect(system.count(name, list) == 0)
      }
    }
  }

  @Test func `R14: each list has an order of its own`() throws {
    var system = installed()
    let outcome = try load(&system) { system, request in
      system.add(name, request, blocked: 20)
      system.add(name, request, identified: 10, label: "x")
      system.add(name, request, blocked: 30)
      system.add(name, request, identified: 20, label: "y")
    }
    #expect(outcome == .stored && system.count(name, .blocking) == 2 && system.count(name, .identification) == 2)
  }

  @Test func `R14: one entry over the limit is error 5, the limit itself is not`() throws {
    var system = installed { $0.maximumEntries = 3 }
    let full = try load(&system) { system, request in
      for number in 1...2 { system.add(name, request, blocked: Int64(number)) }
      system.add(name, request, identified: 1, label: "x")
    }
    #expect(full == .stored)
    let over = try load(&system, incremental: true) { system, request in system.add(name, request, blocked: 3) }
    #expect(over == failed(.maximumEntriesExceeded) && system.count(name, .blocking) == 2)
  }

  @Test func `R14: a removal in a full request is error 8, also where isIncremental is read too late`() throws {
    var system = installed()
    _ = try load(&system) { system, request in system.add(name, request, blocked: 1) }
    for list in System.List.allCases {
      for number in [1, nil] as [Int64?] {
        let outcome = try load(&system) { system, request in
          system.add(name, request, blocked: 5)
          let isIncremental = system.isIncremental(name, request)
          #expect(!isIncremental)
          system.remove(name, request, number, from: list)
        }
        #expect(outcome == failed(.unexpectedIncrementalRemoval))
      }
    }
    #expect(system.match(1).isBlocked, "what was stored stays")
  }

  @Test func `R14: an extension that is not installed is error 1, disabled 6, loading 7`() throws {
    var system = installed()
    func code(_ identifier: String) -> Int? {
      do throws(System.Failure) {
        _ = try system.begin(identifier)
        return nil
      } catch { return error.code }
    }
    #expect(code("other") == 1)
    for status in [System.Status.disabled, .unknown] {
      system.set(name, status)
      #expect(code(name) == 6)
    }
    system.set(name, .enabled)
    #expect(code(name) == nil)
    #expect(code(name) == 7)
  }

  @Test func `R14: an interruption is error 2, and what the extension says afterwards is expired`() throws {
    var system = installed()
    let request = try system.begin(name)
    system.add(name, request, blocked: 1)
    #expect(system.interrupt(name)?.code == 2 && system.interrupt(name) == nil)
    #expect(system.complete(name, request) == .expired && system.cancel(name, request) == .expired)
    let next = try system.begin(name)
    system.add(name, request, blocked: 2)
    #expect(system.complete(name, next) == .stored && system.count(name, .blocking) == 0)
  }

  @Test func `R14: a full request replaces, an incremental one changes`() throws {
    var system = installed()
    _ = try load(&system) { system, request in
      for n in [1, 3, 5] as [Int64] { system.add(name, request, identified: n, label: "a\(n)") }
    }
    let change = try load(&system, incremental: true) { system, request in
      system.remove(name, request, 5, from: .identification)
      system.remove(name, request, 3, from: .identification)
      system.add(name, request, identified: 2, label: "b2")
      system.add(name, request, identified: 5, label: "b5")
    }
    #expect(change == .stored)
    #expect((1...6).map { system.match($0).label } == ["a1", "b2", nil, nil, "b5", nil])
    let all = try load(&system, incremental: true) { system, request in
      system.remove(name, request, nil, from: .identification)
      system.add(name, request, identified: 4, label: "c4")
    }
    #expect(all == .stored && (1...6).compactMap { system.match($0).label } == ["c4"])
    let full = try load(&system) { system, request in system.add(name, request, identified: 6, label: "d6") }
    #expect(full == .stored && (1...6).compactMap { system.match($0).label } == ["d6"])
  }

  @Test func `R14: a stored number added again by an incremental request is error 4, or replaces by the rules`() throws {
    for refuses in [true, false] {
      var system = installed { $0.refusesStoredNumbers = refuses }
      _ = try load(&system) { system, request in system.add(name, request, identified: 1, label: "a") }
      let again = try load(&system, incremental: true) { system, request in
        system.add(name, request, identified: 1, label: "b")
      }
      #expect(again == (refuses ? failed(.duplicateEntries) : .stored))
      #expect(system.match(1).label == (refuses ? "a" : "b"))
    }
  }

  @Test func `R14: nothing is incremental before the first load, after the user's switch, or when the system lost its data`()
    throws
  {
    var system = installed()
    func isIncremental() throws -> Bool {
      let request = try system.begin(name)
      defer { _ = system.complete(name, request) }
      return system.isIncremental(name, request)
    }
    #expect(try !isIncremental())
    #expect(try isIncremental())
    system.forget(name)
    #expect(try !isIncremental())
    system.set(name, .disabled)
    system.set(name, .enabled)
    #expect(try !isIncremental())
  }

  @Test func `R14: a disabled extension shows nothing, and the first installed gives the label`() throws {
    var system = installed()
    _ = try load(&system) { system, request in system.add(name, request, identified: 1, label: "first") }
    system.install("second")
    let request = try system.begin("second")
    system.add("second", request, identified: 1, label: "second")
    #expect(system.complete("second", request) == .stored)
    #expect(system.match(1).label == "first")
    system.set(name, .disabled)
    #expect(system.match(1).label == "second")
  }

  // MARK: Apple's names over it

  private final class Provider: CXCallDirectoryProvider, CXCallDirectoryExtensionContextDelegate {
    let body: (CXCallDirectoryExtensionContext) -> Void
    let failed: (any Error) -> Void
    init(_ body: @escaping (CXCallDirectoryExtensionContext) -> Void, failed: @escaping (any Error) -> Void = { _ in }) {
      (self.body, self.failed) = (body, failed)
      super.init()
    }
    override func beginRequest(with context: CXCallDirectoryExtensionContext) {
      context.delegate = self
      body(context)
    }
    func requestFailed(for extensionContext: CXCallDirectoryExtensionContext, withError error: any Error) { failed(error) }
  }
  /// What came back, in order.
  private final class Log: @unchecked Sendable {
    var lines: [String] = []
    func add(_ who: String, _ error: (any Error)?) { lines.append("\(who) \((error as NSError?).map { "\($0.code)" } ?? "ok")") }
  }

  @Test func `R14: delegate, completion and the app's callback hear of a fault in the order of the rules; codes are any integer`()
  {
    for (order, expected) in [
      (CallDirectoryRules.AfterFailure.delegate, ["delegate 102", "app 102"]),
      (.delegateThenCompletion, ["delegate 102", "expired false", "app 102"]),
      (.completionThenDelegate, ["expired false", "delegate 102", "app 102"]),
    ] {
      var rules = CallDirectoryRules()
      rules.afterFailure = order
      let (manager, log) = (CXCallDirectoryManager(rules: rules), Log())
      manager.install(name) {
        Provider {
          $0.completeRequest { log.lines.append("expired \($0)") }
        } failed: {
          log.add("delegate", $0)
        }
      }
      manager.change { $0.failNext(name, code: 102) }
      manager.reloadExtension(withIdentifier: name) { log.add("app", $0) }
      #expect(log.lines == expected)
    }
  }

  @Test func `R14: the manager's errors have Apple's domain and codes, and match Apple's patterns`() {
    let manager = CXCallDirectoryManager()
    let log = Log()
    manager.reloadExtension(withIdentifier: name) { error in
      let error = error as NSError?
      log.lines.append("\(error?.domain ?? "") \(error?.code ?? -1)")
    }
    #expect(log.lines == ["com.apple.CallKit.error.calldirectorymanager 1"])
    manager.getEnabledStatusForExtension(withIdentifier: name) { log.add("\($0)", $1) }
    manager.install(name, .disabled) { CXCallDirectoryProvider() }
    manager.getEnabledStatusForExtension(withIdentifier: name) { log.add("\($0)", $1) }
    #expect(log.lines.dropFirst() == ["unknown 1", "disabled ok"])
    do {
      throw CXErrorCodeCallDirectoryManagerError(.extensionDisabled)
    } catch CXErrorCodeCallDirectoryManagerError.extensionDisabled {
      log.lines = []
    } catch {}
    #expect(log.lines.isEmpty)
  }

  @Test func `R14: a reload while one is loading is 7, an interruption 2 for both sides, and the late completion expired`() {
    let (manager, log) = (CXCallDirectoryManager(), Log())
    nonisolated(unsafe) var open: CXCallDirectoryExtensionContext?
    manager.install(name) {
      Provider {
        open = $0
      } failed: {
        log.add("delegate", $0)
      }
    }
    manager.reloadExtension(withIdentifier: name) { log.add("first", $0) }
    manager.reloadExtension(withIdentifier: name) { log.add("second", $0) }
    #expect(log.lines == ["second 7"])
    manager.interrupt(name)
    open?.completeRequest { log.lines.append("expired \($0)") }
    #expect(log.lines == ["second 7", "delegate 2", "first 2", "expired true"])
    manager.reloadExtension(withIdentifier: name) { log.add("third", $0) }
    open?.cancelRequest(withError: CXErrorCodeCallDirectoryManagerError(.unknown))
    #expect(log.lines.last == "third 2")
  }
}
