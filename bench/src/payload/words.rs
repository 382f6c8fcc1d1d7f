//! The vocabulary of the texts. Nothing in it is a keyword of a secret, a name, or an instruction to a model.

pub const NOUNS: &[&str] = &[
    "account", "adapter", "address", "agenda", "answer", "archive", "argument", "article", "attic", "balance",
    "banner", "barrel", "basket", "batch", "beacon", "bench", "binder", "blanket", "border", "bottle",
    "bracket", "branch", "bridge", "bucket", "budget", "buffer", "bulletin", "bundle", "button", "cabinet",
    "calendar", "camera", "candle", "canvas", "capacity", "caption", "carrier", "catalog", "cellar",
    "channel", "chapter", "circle", "client", "closet", "cluster", "coast", "column", "comment", "compass",
    "contract", "corner", "corridor", "counter", "coverage", "cradle", "curtain", "cushion", "customer",
    "deadline", "delivery", "depot", "detail", "device", "diagram", "digest", "discount", "distance",
    "document", "drawer", "editor", "engine", "entry", "envelope", "episode", "estimate", "event", "exchange",
    "exhibit", "factor", "fence", "figure", "filter", "finish", "folder", "forecast", "formula", "fountain",
    "frame", "freight", "garden", "gallery", "garment", "gauge", "glossary", "gradient", "grocery", "group",
    "guide", "habit", "hammer", "handle", "harbor", "harvest", "heading", "hinge", "history", "holiday",
    "horizon", "household", "index", "inlet", "insight", "invoice", "island", "journal", "junction", "kernel",
    "kettle", "label", "ladder", "landing", "lantern", "laundry", "layer", "ledger", "lesson", "letter",
    "library", "lighthouse", "limit", "listing", "locker", "machine", "mailbox", "manual", "margin", "market",
    "measure", "meeting", "member", "memo", "menu", "merchant", "message", "meter", "method", "mirror",
    "mission", "module", "moment", "monitor", "morning", "motor", "mountain", "museum", "network", "notebook",
    "notice", "number", "object", "office", "orchard", "order", "outcome", "outline", "package", "packet",
    "panel", "parade", "parcel", "parser", "partner", "passage", "pattern", "pavement", "payload", "pebble",
    "pepper", "permit", "picture", "pipeline", "planet", "platform", "pocket", "podium", "policy", "portal",
    "position", "postcard", "printer", "process", "product", "profile", "program", "project", "prompt",
    "property", "proposal", "quarter", "question", "queue", "quota", "railway", "rainfall", "reader",
    "receipt", "recipe", "record", "refund", "region", "release", "reminder", "repair", "reply", "report",
    "request", "reserve", "resource", "result", "review", "river", "rocket", "roster", "route", "routine",
    "sample", "schedule", "schema", "season", "section", "segment", "sensor", "sentence", "server", "session",
    "shelter", "shelf", "shipment", "signal", "silver", "sketch", "socket", "solution", "source", "spindle",
    "square", "stable", "station", "statement", "storage", "story", "stream", "street", "studio", "subject",
    "suggestion", "summary", "supplier", "surface", "survey", "switch", "symbol", "table", "target",
    "template", "tenant", "terminal", "texture", "theatre", "thread", "ticket", "timber", "timeline", "tower",
    "traffic", "trailer", "transfer", "treasury", "trigger", "tunnel", "turbine", "tutorial", "umbrella",
    "update", "valley", "variant", "vehicle", "vendor", "version", "village", "visitor", "volume", "voyage",
    "wagon", "warehouse", "weather", "weekend", "window", "winter", "workflow", "workshop",
];

pub const ADJECTIVES: &[&str] = &[
    "absent", "active", "adjacent", "annual", "brief", "bright", "broad", "busy", "calm", "careful",
    "central", "cheap", "clear", "coarse", "common", "compact", "complete", "constant", "crowded", "curious",
    "current", "daily", "damp", "dense", "detailed", "distant", "double", "dull", "eager", "early", "eastern",
    "empty", "equal", "exact", "external", "familiar", "final", "flat", "foreign", "formal", "former",
    "forward", "fragile", "frequent", "fresh", "full", "gentle", "global", "gradual", "handy", "heavy",
    "hidden", "hollow", "idle", "improved", "initial", "inner", "instant", "joint", "known", "large",
    "lasting", "late", "lean", "light", "linear", "local", "loose", "lower", "main", "major", "manual",
    "marginal", "medium", "minor", "missing", "mixed", "modern", "modest", "monthly", "narrow", "nearby",
    "neutral", "northern", "novel", "obvious", "older", "open", "optional", "ordinary", "outer", "overdue",
    "partial", "patient", "plain", "pending", "polite", "popular", "portable", "primary", "prior", "private",
    "proper", "public", "quiet", "random", "rapid", "rare", "ready", "recent", "regional", "relative",
    "remote", "robust", "rough", "rural", "sealed", "second", "separate", "several", "shared", "short",
    "silent", "similar", "simple", "single", "slow", "small", "smooth", "sparse", "spare", "stable",
    "standard", "steady", "strict", "subtle", "sudden", "sunny", "temporary", "thick", "thin", "third",
    "tidy", "typical", "uneven", "unique", "unusual", "upper", "urgent", "usable", "useful", "valid",
    "various", "verbal", "visible", "vital", "warm", "weekly", "western", "whole", "wide", "wooden", "yearly",
];

pub const VERBS: &[&str] = &[
    "accepts", "adds", "adjusts", "answers", "arranges", "assembles", "assumes", "attaches", "balances",
    "borrows", "bounds", "builds", "carries", "catches", "changes", "charges", "checks", "clears", "closes",
    "collects", "combines", "compares", "compiles", "completes", "confirms", "connects", "contains", "copies",
    "counts", "covers", "creates", "crosses", "delays", "delivers", "depends on", "describes", "drains",
    "draws", "drops", "extends", "fetches", "files", "filters", "finishes", "fits", "follows", "gathers",
    "groups", "guards", "guides", "holds", "ignores", "improves", "includes", "informs", "inspects", "joins",
    "keeps", "launches", "leads", "leaves", "lifts", "lists", "loads", "locates", "marks", "matches",
    "measures", "mentions", "merges", "moves", "names", "needs", "notes", "notices", "opens", "orders",
    "packs", "passes", "places", "plans", "points
    at", "prepares", "prints", "produces", "protects",
    "pulls", "pushes", "queues", "reaches", "reads", "receives", "records", "reduces", "refers to",
    "releases", "replaces", "reports", "requires", "resolves", "returns", "reviews", "rotates", "routes",
    "saves", "scores", "seals", "selects", "sends", "separates", "serves", "shapes", "shares", "shifts",
    "shows", "signs", "sorts", "splits", "starts", "stores", "suggests", "supplies", "supports", "switches",
    "tests", "traces", "tracks", "trims", "turns", "updates", "uses", "waits for", "warns", "watches",
    "weighs", "wraps", "writes",
];

pub const VERB_STEMS: &[&str] = &[
    "add", "adjust", "align", "apply", "attach", "balance", "build", "check", "clear", "collect", "combine",
    "compare", "compile", "copy", "count", "create", "describe", "drain", "draw", "extend", "fetch", "filter",
    "find", "finish", "flatten", "fold", "format", "gather", "group", "hold", "index", "insert", "inspect",
    "join", "keep", "list", "load", "locate", "map", "mark", "match", "measure", "merge", "move", "normalize",
    "open", "order", "pack", "parse", "pick", "place", "plan", "prepare", "print", "prune", "push", "queue",
    "read", "record", "reduce", "release", "rename", "render", "replace", "report", "resolve", "rotate",
    "route", "save", "scan", "score", "select", "send", "settle", "shape", "share", "shift", "show", "sort",
    "split", "stage", "start", "store", "trace", "track", "trim", "turn", "update", "validate", "visit",
    "walk", "warm", "wrap", "write",
];

pub const PREPOSITIONS: &[&str] = &[
    "above", "after", "along", "around", "before", "behind", "below", "beside", "between", "beyond", "during",
    "inside", "near", "outside", "over", "through", "toward", "under", "until", "with", "within", "without",
];

pub const DETERMINERS: &[&str] = &[
    "the", "the", "the", "a", "every", "each", "this", "that", "some", "another", "our", "their", "one",
    "any", "no", "its",
];

pub const ADVERBS: &[&str] = &[
    "roughly", "nearly", "about", "exactly", "usually", "rarely", "often", "probably", "clearly", "slowly",
    "almost",
];

pub const FOLDERS: &[&str] = &[
    "src", "lib", "docs", "tests", "app/models", "app/views", "internal/cache", "pkg/router", "tools/build",
    "web/static", "content/posts", "notes/2024", "scripts/release", "examples/basic", "services/billing",
    "modules/search", "data/fixtures",
];

pub const EXTENSIONS: &[&str] = &[
    "rs", "py", "ts", "md", "toml", "json", "yaml", "go", "css", "html", "sql", "txt",
];

pub const UNITS: &[&str] = &[
    " metres", " minutes", " pages", " rows", " files", " percent", " lines", " kilobytes", " seats", " days",
    " steps", " items", " ms",
];

pub const OPENERS: &[&str] = &[
    "", "", "", "", "", "however, ", "in practice ", "for now ", "as a rule ", "on the second try ",
    "by default ", "since last week ", "after the review ", "in that case ", "to be fair ", "when it rains ",
    "before lunch ", "at first ", "so far ",
];

pub const ASIDES: &[&str] = &[
    " (see the “usual” note)", " – as the café owner said", " (naïve, but it works)", " … more or less",
    " – 12 °C at noon", " (résumé attached)",
];
