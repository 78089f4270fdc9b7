import Foundation
import Telemetry
import Testing
import TrunklinePlatform

@Suite struct HealthTests {
  private let readiness = Readiness()
  private var pages: HealthHandlers { HealthHandlers(registry: MetricRegistry(), readiness: readiness, version: "1.2.3") }

  private func object(_ page: HealthHandlers.Page?) throws -> [String: Any] {
    let body = try #require(page).body
    return try #require(JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
  }

  @Test func `healthz answers while the process lives`() throws {
    let page = pages.page("/healthz")
    #expect(page?.status == 200)
    #expect(try object(page)["status"] as? String == "ok")
  }

  @Test func `healthz fails while a thread hangs and names it`() throws {
    let hung = [ThreadWatch.Hung(thread: "store", age: .milliseconds(2_100)), .init(thread: "push", age: .seconds(3))]
    let page = HealthHandlers(registry: MetricRegistry(), readiness: readiness, version: "1.2.3") { hung }.page("/healthz")
    #expect(page?.status == 503)
    let root = try object(page)
    #expect(root["status"] as? String == "hung")
    let threads = try #require(root["threads"] as? [[String: Any]])
    #expect(threads.map { $0["name"] as? String } == ["store", "push"])
    #expect(threads.map { $0["milliseconds"] as? Int } == [2_100, 3_000])
  }

  /// A restart because of a disk that hangs, or a user that asks too much of the directory, would end every call.
  @Test func `healthz reports vital threads alone, readyz the others as well`() throws {
    readiness.set("sip", ready: true)
    for (thread, isAlive, isReady) in [("control", false, true), ("directory", true, false), ("store", true, false)] {
      let hung = [ThreadWatch.Hung(thread: thread, age: .milliseconds(2_100))]
      let pages = HealthHandlers(
        registry: MetricRegistry(), readiness: readiness, version: "1.2.3", hung: { hung },
        isVital: { $0 == "control" })
      #expect(pages.page("/healthz")?.status == (isAlive ? 200 : 503), "\(thread)")
      #expect(pages.page("/readyz")?.status == (isReady ? 200 : 503), "\(thread)")
      let components = try #require(try object(pages.page("/readyz"))["components"] as? [[String: Any]])
      #expect(components.map { $0["name"] as? String } == (isReady ? ["sip"] : ["sip", "thread \(thread)"]))
    }
  }

  @Test func `PERF-3: readyz fails with the reason until every component is ready`() throws {
    #expect(pages.page("/readyz")?.status == 503)
    readiness.set("sip", ready: true)
    readiness.set("store", ready: false, why: "disk \"full\":\n/var")
    let page = pages.page("/readyz")
    #expect(page?.status == 503)
    let root = try object(page)
    #expect(root["ready"] as? Bool == false)
    let components = try #require(root["components"] as? [[String: Any]])
    #expect(components.map { $0["name"] as? String } == ["sip", "store"])
    #expect(components.map { $0["reason"] as? String } == [nil, "disk \"full\":\n/var"])
    readiness.set("store", ready: true, note: "half full")
    #expect(pages.page("/readyz")?.status == 200)
    let rows = try #require(try object(pages.page("/readyz"))["components"] as? [[String: Any]])
    #expect(rows.map { $0["note"] as? String } == [nil, "half full"])
  }

  @Test func `metrics come in the text format, other paths have no page`() {
    #expect(pages.page("/metrics")?.contentType == "text/plain; version=0.0.4; charset=utf-8")
    #expect(pages.page("/") == nil)
  }
}
