import Foundation
import Testing
import Yams

/// Dashboards and alerts ask for metrics and labels that the gateway has: docs/operate/monitoring.md lists them, and
/// `MetricReferenceTests` holds that list to a running gateway.
@Suite struct DashboardTests {
  struct Dashboard: Decodable {
    struct Panel: Decodable {
      struct Target: Decodable {
        var expr: String
        var legendFormat: String
      }
      struct FieldConfig: Decodable {
        struct Defaults: Decodable { var unit: String }
        var defaults: Defaults
      }
      var id: Int
      var title: String
      var description: String
      var fieldConfig: FieldConfig
      var targets: [Target]
    }
    struct Templating: Decodable {
      struct Variable: Decodable {
        var type: String
        var query: String
      }
      var list: [Variable]
    }
    var uid: String
    var panels: [Panel]
    var templating: Templating
  }
  struct Rules: Decodable {
    struct Group: Decodable { var rules: [Rule] }
    struct Rule: Decodable {
      var alert: String
      var expr: String
      var `for`: String
      var labels: [String: String]
      var annotations: [String: String]
    }
    var groups: [Group]
  }
  struct RuleTests: Decodable {
    struct Case: Decodable { var alert_rule_test: [Expected] }
    struct Expected: Decodable {
      var alertname: String
      var exp_alerts: [Alert]?
    }
    struct Alert: Decodable { var exp_labels: [String: String] }
    var tests: [Case]
  }

  private static let deploy = DocumentsTests.root.appendingPathComponent("Deploy")

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: DocumentsTests.root.appendingPathComponent(path), encoding: .utf8)
  }

  /// Of the gateway, and Prometheus' own `up`, which says whether there is one.
  private static func metrics() throws -> [String: Set<String>] {
    var metrics = try MetricExpression.metrics(text("docs/operate/monitoring.md"))
    metrics["up"] = ["instance", "job"]
    return metrics
  }

  private static func dashboards() throws -> [(name: String, dashboard: Dashboard)] {
    try ["operations", "quality", "capacity"].map { name in
      (name, try JSONDecoder().decode(Dashboard.self, from: Data(text("Deploy/grafana/\(name).json").utf8)))
    }
  }

  private static func rules() throws -> [Rules.Rule] {
    try YAMLDecoder().decode(Rules.self, from: text("Deploy/alerts.yml")).groups.flatMap(\.rules)
  }

  /// The labels in `{{trunk}}` of a legend and `$labels.trunk` of an annotation.
  private static func labels(_ text: String) -> [String] {
    text.matches(of: /\{\{(\w+)\}\}/).map { String($0.1) } + text.matches(of: /\$labels\.(\w+)/).map { String($0.1) }
  }

  private func promtool(_ arguments: [String]) throws -> (status: Int32, text: String) {
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/promtool")
    process.arguments = arguments
    process.currentDirectoryURL = Self.deploy
    (process.standardOutput, process.standardError) = (pipe, pipe)
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }
  private static let hasPromtool = FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool")

  @Test func `a panel has a title, a description, a unit, and only metrics and labels of the gateway`() throws {
    let metrics = try Self.metrics()
    #expect(metrics.count > 100, "only \(metrics.count) metrics were found")
    for (name, dashboard) in try Self.dashboards() {
      #expect(dashboard.panels.count > 8 && Set(dashboard.panels.map(\.id)).count == dashboard.panels.count, "\(name)")
      for variable in dashboard.templating.list where variable.type == "query" {
        #expect(MetricExpression(variable.query).problems(metrics).isEmpty, "\(name): \(variable.query)")
      }
      for panel in dashboard.panels {
        #expect(!panel.title.isEmpty && !panel.description.isEmpty && !panel.targets.isEmpty, "\(name): \(panel.title)")
        #expect(!panel.fieldConfig.defaults.unit.isEmpty, "\(name): \(panel.title)")
        for target in panel.targets {
          let problems = MetricExpression(target.expr).problems(metrics, alsoUsed: Self.labels(target.legendFormat))
          #expect(problems.isEmpty, "\(name): \(panel.title): \(problems)")
        }
      }
    }
  }

  @Test func `an alert has a time, a severity, a summary, a section of the runbooks, and only metrics and labels of the gateway`()
    throws
  {
    let metrics = try Self.metrics()
    let headings = try Self.text("docs/operate/runbooks.md").components(separatedBy: "\n").filter { $0.hasPrefix("#") }
    let anchors = Set(headings.map(DocumentsTests.anchor))
    let rules = try Self.rules()
    #expect(rules.count > 10 && Set(rules.map(\.alert)).count == rules.count)
    for rule in rules {
      let problems = MetricExpression(rule.expr).problems(metrics, alsoUsed: Self.labels(rule.annotations["summary"] ?? ""))
      #expect(problems.isEmpty, "\(rule.alert): \(problems)")
      #expect(!rule.for.isEmpty && ["critical", "warning"].contains(rule.labels["severity"]), "\(rule.alert)")
      #expect(rule.annotations["summary"]?.isEmpty == false, "\(rule.alert)")
      let runbook = try #require(rule.annotations["runbook_url"]?.split(separator: "#").map(String.init))
      #expect(runbook.first == "docs/operate/runbooks.md" && anchors.contains(runbook.last ?? ""), "\(rule.alert): \(runbook)")
    }
  }

  @Test func `each alert has a rules test in which it fires`() throws {
    let tests = try YAMLDecoder().decode(RuleTests.self, from: Self.text("Deploy/alerts.test.yml"))
    let firing = tests.tests.flatMap(\.alert_rule_test).filter { $0.exp_alerts?.isEmpty == false }.map(\.alertname)
    let silent = tests.tests.flatMap(\.alert_rule_test).filter { $0.exp_alerts?.isEmpty != false }.map(\.alertname)
    for rule in try Self.rules() {
      #expect(firing.contains(rule.alert), "\(rule.alert) never fires")
      #expect(silent.filter { $0 == rule.alert }.count >= 2, "\(rule.alert): before its time, and recovered")
    }
  }

  @Test func `a series of the rules tests is one of the gateway's`() throws {
    let metrics = try Self.metrics()
    var count = 0
    for match in try Self.text("Deploy/alerts.test.yml").matches(of: /series: '([^']+)'/) {
      count += 1
      #expect(MetricExpression(String(match.1)).problems(metrics).isEmpty, "\(match.1)")
    }
    #expect(count > 10)
  }

  @Test(.enabled(if: DashboardTests.hasPromtool, "needs Debian's package prometheus"))
  func `promtool makes each alert fire at its time and recover`() throws {
    let (status, text) = try promtool(["test", "rules", "alerts.test.yml"])
    #expect(status == 0, "\(text)")
  }

  @Test(.enabled(if: DashboardTests.hasPromtool, "needs Debian's package prometheus"))
  func `promtool reads the expression of each panel`() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("panels-\(UUID().uuidString.prefix(8)).yml")
    defer { try? FileManager.default.removeItem(at: folder) }
    let expressions = try Self.dashboards().flatMap { $0.dashboard.panels.flatMap { $0.targets.map(\.expr) } }
    // a variable of the dashboard is text inside of a matcher: it parses as it stands
    let rules = expressions.enumerated().map { "      - record: panel\($0)\n        expr: '\($1)'\n" }.joined()
    try "groups:\n  - name: panels\n    rules:\n\(rules)".write(to: folder, atomically: true, encoding: .utf8)
    let (status, text) = try promtool(["check", "rules", folder.path])
    #expect(status == 0, "\(text)")
  }

  @Test func `an unknown metric, and a label that a metric does not have, are seen`() {
    let metrics = MetricExpression.metrics("| `a_up` | gauge | trunk | x |\n| `b_seconds` | histogram |  | y |")
    func problems(_ expression: String) -> [String] { MetricExpression(expression).problems(metrics) }
    #expect(problems(#"sum by (trunk, instance) (rate(a_up{trunk=~"x"}[5m] offset 1d)) > 2 * 1e3"#) == [])
    #expect(problems("histogram_quantile(0.5, sum by (le) (rate(b_seconds_bucket[5m])))") == [])
    #expect(problems("b_seconds") == ["no metric b_seconds"] && problems("a_down == 0") == ["no metric a_down"])
    #expect(problems(#"a_up{server="x"}"#) == ["a_up has no label server"])
    #expect(problems("sum by (server) (a_up)") == ["no metric here has the label server"])
    #expect(problems("label_values(a_up, server)") == ["a_up has no label server"])
    #expect(problems("1 + 1") == ["no metric"])
  }
}
