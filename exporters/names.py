"""The contract: every metric family that inferslo publishes, named once.

Goldens, docs, dashboards, rules and the exporters themselves take names only from here.
A name is never changed or removed without a CHANGELOG entry; adding a label to a published
family breaks recording rules that aggregate `by` and counts as a change.

Naming follows https://prometheus.io/docs/practices/naming/: base units (seconds, bytes,
ratios 0..1), counters end in `_total`, identity lives in `_info` families.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

PREFIX = "inferslo_"


class Kind(StrEnum):
    """The Prometheus type of a family."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Feed(StrEnum):
    """The part of the sidecar that a family comes from; the sections of docs/metrics.md."""

    ENGINE = "engine"
    PROBE = "probe"
    GPU = "gpu"
    HOST = "host"
    GATEWAY = "gateway"
    EVENTS = "events"
    JUDGE = "judge"
    SIDECAR = "sidecar"


class Origin(StrEnum):
    """How a value was obtained: the values of the label `source`.

    `derived` values are computed from other series; everything else was measured where it says.
    """

    ENGINE = "engine"
    PROBE = "probe"
    DERIVED = "derived"
    GATEWAY = "gateway"
    EVENT = "event"


class Outcome(StrEnum):
    """What became of a request: the values of the label `outcome` of `inferslo_requests_total`."""

    SUCCESS = "success"
    ERROR = "error"
    ABORTED = "aborted"
    TIMEOUT = "timeout"
    REJECTED = "rejected"
    EMPTY = "empty"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family. `name` is the name as queried (a counter's ends in `_total`)."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str
    feed: Feed


_families: dict[str, Family] = {}


def _declare(feed: Feed, kind: Kind, name: str, unit: str, labels: str, help: str) -> Family:
    family = Family(PREFIX + name, kind, unit, tuple(labels.split()), help, feed)
    if family.name in _families:
        raise ValueError(f"{family.name} is declared twice")
    _families[family.name] = family
    return family


# --- engine: identity and health -------------------------------------------------------------

ENGINE_UP = _declare(
    Feed.ENGINE, Kind.GAUGE, "engine_up", "", "engine",
    "1 if the last read of the engine's metrics succeeded, 0 if it failed.",
)  # fmt: skip
ENGINE_INFO = _declare(
    Feed.ENGINE, Kind.GAUGE, "engine_info", "", "engine engine_type version model_name",
    "Always 1; says what the engine is. `version` is empty where the engine does not tell.",
)  # fmt: skip
ENGINE_START_TIME = _declare(
    Feed.ENGINE, Kind.GAUGE, "engine_start_time_seconds", "seconds", "engine",
    "Unix time at which the engine's API process started.",
)  # fmt: skip
ENGINE_RESETS = _declare(
    Feed.ENGINE, Kind.COUNTER, "engine_resets_total", "", "engine",
    "Times that the engine's counters went backwards: a restart, statistics rebuilt in place, or a"
    " data-parallel engine that left the page.",
)  # fmt: skip
ENGINE_STATS_ENABLED = _declare(
    Feed.ENGINE, Kind.GAUGE, "engine_stats_enabled", "", "engine",
    "1 if the engine publishes its own statistics, 0 if they were switched off by a flag.",
)  # fmt: skip
ENGINE_AWAKE = _declare(
    Feed.ENGINE, Kind.GAUGE, "engine_awake", "", "engine model_name",
    "1 if the engine can serve, 0 if it sleeps (weights offloaded or discarded).",
)  # fmt: skip
SIGNAL_AVAILABLE = _declare(
    Feed.ENGINE, Kind.GAUGE, "signal_available", "", "engine signal source",
    "1 if the signal can be had from this engine and how (`source`), 0 if it is missing; /v1/status"
    " says why and how to get it. One that can be had may have no value at the moment: a share of"
    " the KV cache in use while nothing is in use.",
)  # fmt: skip

# --- engine: latency -------------------------------------------------------------------------

_REQUEST_LABELS = "engine model_name source"
TTFT = _declare(
    Feed.ENGINE, Kind.HISTOGRAM, "ttft_seconds", "seconds", _REQUEST_LABELS,
    "Time to first token: request received to first token, queue wait included. Bounds are the"
    " engine's own.",
)  # fmt: skip
ITL = _declare(
    Feed.ENGINE, Kind.HISTOGRAM, "itl_seconds", "seconds", _REQUEST_LABELS,
    "Inter-token latency: gap between two outputs of one request. vLLM observes one gap per engine"
    " step, so speculative decoding overstates it.",
)  # fmt: skip
TPOT = _declare(
    Feed.ENGINE, Kind.HISTOGRAM, "tpot_seconds", "seconds", _REQUEST_LABELS,
    "Time per output token of a finished request, first token left out. vLLM observes 0 for"
    " requests of one token.",
)  # fmt: skip
E2E = _declare(
    Feed.ENGINE, Kind.HISTOGRAM, "e2e_seconds", "seconds", _REQUEST_LABELS,
    "End-to-end latency of finished requests. Requests that the client gave up are not in it.",
)  # fmt: skip
QUEUE = _declare(
    Feed.ENGINE, Kind.HISTOGRAM, "queue_seconds", "seconds", _REQUEST_LABELS,
    "Time that finished requests waited before they were first scheduled.",
)  # fmt: skip
PREFILL = _declare(
    Feed.ENGINE, Kind.HISTOGRAM, "prefill_seconds", "seconds", _REQUEST_LABELS,
    "First scheduled to first token, of finished requests.",
)  # fmt: skip
DECODE = _declare(
    Feed.ENGINE, Kind.HISTOGRAM, "decode_seconds", "seconds", _REQUEST_LABELS,
    "First token to last token, of finished requests.",
)  # fmt: skip

# --- engine: moments -------------------------------------------------------------------------
# Var = ΔQ/Δn - (ΔS/Δn)²: exact over any window and additive over pods (Chan et al. 1979).


@dataclass(frozen=True, slots=True)
class Moments:
    """The counters from which mean and variance of one latency follow over any window.

    `lower` and `upper` bracket `squares` where it is derived from buckets.
    """

    n: Family
    sum: Family
    squares: Family
    lower: Family
    upper: Family


def _moments(name: str, what: str) -> Moments:
    def counter(suffix: str, unit: str, help: str) -> Family:
        return _declare(
            Feed.ENGINE, Kind.COUNTER, f"{name}_moment_{suffix}_total", unit, _REQUEST_LABELS, help
        )

    return Moments(
        n=counter("n", "", f"Number of {what} in the moments."),
        sum=counter("seconds", "seconds", f"Sum of {what}."),
        squares=counter(
            "seconds_squared", "seconds²", f"Sum of squares of {what}; an estimate if derived."
        ),
        lower=counter(
            "seconds_squared_lower", "seconds²",
            f"Least sum of squares of {what} that bucket counts and sum allow.",
        ),
        upper=counter(
            "seconds_squared_upper", "seconds²",
            f"Greatest sum of squares of {what} that bucket counts and sum allow.",
        ),
    )  # fmt: skip


TPOT_MOMENTS = _moments("tpot", "TPOT of finished requests")
ITL_MOMENTS = _moments("itl", "inter-token latencies")

# --- engine: requests, tokens, queue ---------------------------------------------------------

REQUESTS = _declare(
    Feed.ENGINE, Kind.COUNTER, "requests_total", "", "engine model_name outcome source",
    "Requests by what became of them: success, error (HTTP 5xx or failed inside), aborted (the"
    " client gave up), timeout, rejected (queue full, rate limit), empty (no token), invalid"
    " (the request itself was refused, HTTP 4xx).",
)  # fmt: skip
PROMPT_TOKENS = _declare(
    Feed.ENGINE, Kind.COUNTER, "prompt_tokens_total", "tokens", "engine model_name",
    "Prompt tokens processed, cached ones included.",
)  # fmt: skip
GENERATION_TOKENS = _declare(
    Feed.ENGINE, Kind.COUNTER, "generation_tokens_total", "tokens", "engine model_name",
    "Tokens generated.",
)  # fmt: skip
REQUESTS_RUNNING = _declare(
    Feed.ENGINE, Kind.GAUGE, "requests_running", "", "engine model_name",
    "Requests in the running batch.",
)  # fmt: skip
REQUESTS_WAITING = _declare(
    Feed.ENGINE, Kind.GAUGE, "requests_waiting", "", "engine model_name",
    "Requests waiting to be scheduled.",
)  # fmt: skip
PREEMPTIONS = _declare(
    Feed.ENGINE, Kind.COUNTER, "preemptions_total", "", "engine model_name",
    "Running requests put back into the queue for want of KV cache.",
)  # fmt: skip

# --- engine: KV cache ------------------------------------------------------------------------

KV_USAGE = _declare(
    Feed.ENGINE, Kind.GAUGE, "kv_cache_usage_ratio", "ratio", "engine model_name",
    "KV cache in use by live requests, 0..1, mean over data-parallel engines. Cached blocks that"
    " no request refers to count as free.",
)  # fmt: skip
KV_USAGE_MAX = _declare(
    Feed.ENGINE, Kind.GAUGE, "kv_cache_usage_max_ratio", "ratio", "engine model_name",
    "KV cache in use, 0..1, of the fullest data-parallel engine.",
)  # fmt: skip
KV_CAPACITY = _declare(
    Feed.ENGINE, Kind.GAUGE, "kv_cache_capacity_tokens", "tokens", "engine model_name",
    "Tokens that the KV cache can hold, over all data-parallel engines.",
)  # fmt: skip
KV_BLOCKS = _declare(
    Feed.ENGINE, Kind.GAUGE, "kv_cache_blocks", "", "engine model_name",
    "Blocks of KV cache, over all data-parallel engines.",
)  # fmt: skip
KV_BLOCK_SIZE = _declare(
    Feed.ENGINE, Kind.GAUGE, "kv_cache_block_size_tokens", "tokens", "engine model_name",
    "Tokens in one KV block.",
)  # fmt: skip
KV_TAIL_WASTE_UPPER_BOUND = _declare(
    Feed.ENGINE, Kind.GAUGE, "kv_tail_waste_upper_bound_ratio", "ratio",
    "engine model_name source",
    "No more than this share of the live KV slots is lost in partly filled last blocks (internal"
    " fragmentation). A bound, not a measurement: running x KV cache groups x (block size - 1) /"
    " live slots. Absent while nothing is in use.",
)  # fmt: skip
PREFIX_CACHE_QUERIES = _declare(
    Feed.ENGINE, Kind.COUNTER, "prefix_cache_queries_tokens_total", "tokens", "engine model_name",
    "Prompt tokens looked up in the prefix cache.",
)  # fmt: skip
PREFIX_CACHE_HITS = _declare(
    Feed.ENGINE, Kind.COUNTER, "prefix_cache_hits_tokens_total", "tokens", "engine model_name",
    "Prompt tokens found in the prefix cache.",
)  # fmt: skip

# --- in-engine probe -------------------------------------------------------------------------
# The contract of what the probe will publish, so that SLO files can already speak of classes.
# Nothing publishes these yet: `inferslo check --engine` and `signal_available` say so.

_CLASS_LABELS = "engine model_name sla_class prompt_class"


def _probe(kind: Kind, name: str, unit: str, labels: str, help: str) -> Family:
    return _declare(Feed.PROBE, kind, name, unit, labels, help)


CLASS_TTFT = _probe(
    Kind.HISTOGRAM, "class_ttft_seconds", "seconds", _CLASS_LABELS,
    "Time to first content token by class. Bounds are the thresholds of the SLO file.",
)  # fmt: skip
CLASS_TPOT = _probe(
    Kind.HISTOGRAM, "class_tpot_seconds", "seconds", _CLASS_LABELS,
    "Time per output token by class, of requests with at least two tokens.",
)  # fmt: skip
CLASS_ITL = _probe(
    Kind.HISTOGRAM, "class_itl_seconds", "seconds", _CLASS_LABELS,
    "Gap between two content chunks of one stream by class.",
)  # fmt: skip
CLASS_E2E = _probe(
    Kind.HISTOGRAM, "class_e2e_seconds", "seconds", _CLASS_LABELS,
    "End-to-end latency by class.",
)  # fmt: skip
CLASS_QUEUE = _probe(
    Kind.HISTOGRAM, "class_queue_seconds", "seconds", _CLASS_LABELS,
    "Time that requests waited before they were first scheduled, by class.",
)  # fmt: skip
CLASS_REQUESTS = _probe(
    Kind.COUNTER, "class_requests_total", "", f"{_CLASS_LABELS} outcome",
    "Requests by class and by what became of them, as in requests_total.",
)  # fmt: skip
CLASS_GOODPUT = _probe(
    Kind.COUNTER, "class_goodput_total", "", f"{_CLASS_LABELS} result",
    "Requests that met all targets of their class together (good) or did not (bad).",
)  # fmt: skip
KV_TAIL_WASTE = _probe(
    Kind.GAUGE, "kv_tail_waste_ratio", "ratio", "engine model_name",
    "Share of the live KV slots that hold no token, measured: 1 - tokens held / slots held.",
)  # fmt: skip
ALLOCATOR_RESERVED = _probe(
    Kind.GAUGE, "allocator_reserved_bytes", "bytes", "engine uuid",
    "Device memory that the engine's allocator holds.",
)  # fmt: skip
ALLOCATOR_STRANDED = _probe(
    Kind.GAUGE, "allocator_stranded_bytes", "bytes", "engine uuid",
    "Device memory that the engine's allocator holds and cannot hand out: inactive split blocks.",
)  # fmt: skip
ALLOCATOR_OOMS = _probe(
    Kind.COUNTER, "allocator_ooms_total", "", "engine uuid cause",
    "Out-of-memory errors by cause: fragmentation, big_request, leak.",
)  # fmt: skip

# --- gpu -------------------------------------------------------------------------------------

_GPU = "gpu uuid"


def _gpu(kind: Kind, name: str, unit: str, help: str, labels: str = _GPU) -> Family:
    return _declare(Feed.GPU, kind, "gpu_" + name, unit, labels, help)


GPU_UP = _gpu(Kind.GAUGE, "up", "", "1 if the last read of this GPU succeeded, 0 if it failed.")
GPU_INFO = _gpu(
    Kind.GAUGE, "info", "", "Always 1; says what the GPU is. `mig` is the profile of a MIG part.",
    "gpu uuid name driver_version mig",
)  # fmt: skip
GPU_VISIBLE = _gpu(Kind.GAUGE, "devices_visible", "", "GPUs that answered in the last read.", "")
GPU_EXPECTED = _gpu(
    Kind.GAUGE, "devices_expected", "",
    "GPUs that should answer: the configured number, else the most ever seen.", "",
)  # fmt: skip
GPU_MEMORY_TOTAL = _gpu(Kind.GAUGE, "memory_total_bytes", "bytes", "Device memory.")
GPU_MEMORY_USED = _gpu(
    Kind.GAUGE, "memory_used_bytes", "bytes",
    "Device memory in use; without the driver's own where the driver tells it apart.",
)  # fmt: skip
GPU_MEMORY_FREE = _gpu(Kind.GAUGE, "memory_free_bytes", "bytes", "Device memory free.")
GPU_MEMORY_RESERVED = _gpu(
    Kind.GAUGE, "memory_reserved_bytes", "bytes",
    "Device memory held by the driver. Absent before driver R510, where `used` includes it.",
)  # fmt: skip
GPU_UTILIZATION = _gpu(
    Kind.GAUGE, "utilization_ratio", "ratio",
    "Share of the last sample period in which any kernel ran. Says nothing of how full the GPU"
    " was; absent under MIG.",
)  # fmt: skip
GPU_UTILIZATION_N = _gpu(
    Kind.COUNTER, "utilization_moment_n_total", "", "Samples of utilisation taken.",
)  # fmt: skip
GPU_UTILIZATION_SUM = _gpu(
    Kind.COUNTER, "utilization_moment_ratio_total", "ratio", "Sum of sampled utilisation.",
)  # fmt: skip
GPU_UTILIZATION_SQUARES = _gpu(
    Kind.COUNTER, "utilization_moment_ratio_squared_total", "ratio²",
    "Sum of squares of sampled utilisation.",
)  # fmt: skip
GPU_MEMORY_BANDWIDTH_UTILIZATION = _gpu(
    Kind.GAUGE, "memory_bandwidth_utilization_ratio", "ratio",
    "Share of the last sample period in which memory was read or written; not how full it is.",
)  # fmt: skip
GPU_TEMPERATURE = _gpu(
    Kind.GAUGE, "temperature_celsius", "celsius", "Temperature by sensor: gpu, memory.",
    "gpu uuid sensor",
)  # fmt: skip
GPU_TEMPERATURE_LIMIT = _gpu(
    Kind.GAUGE, "temperature_limit_celsius", "celsius",
    "Temperature at which the driver acts: slowdown, shutdown, memory_max, gpu_max. Newer GPUs"
    " tell a margin instead.",
    "gpu uuid limit",
)  # fmt: skip
GPU_TEMPERATURE_MARGIN = _gpu(
    Kind.GAUGE, "temperature_margin_celsius", "celsius",
    "Degrees left until the nearest thermal limit (T.Limit); below 0 past it.",
)  # fmt: skip
GPU_TEMPERATURE_LIMIT_MARGIN = _gpu(
    Kind.GAUGE, "temperature_limit_margin_celsius", "celsius",
    "Margin (temperature_margin) at which the driver acts: slowdown, shutdown, memory_max, gpu_max;"
    " 0 or below.",
    "gpu uuid limit",
)  # fmt: skip
GPU_POWER = _gpu(
    Kind.GAUGE, "power_watts", "watts",
    "Power drawn: average (about 1 s), instant, or unspecified (old drivers do not tell which).",
    "gpu uuid reading",
)  # fmt: skip
GPU_POWER_LIMIT = _gpu(Kind.GAUGE, "power_limit_watts", "watts", "Power limit now enforced.")
GPU_ENERGY = _gpu(
    Kind.COUNTER, "energy_joules_total", "joules", "Energy used since the driver was loaded."
)
GPU_CLOCK = _gpu(
    Kind.GAUGE, "clock_hertz", "hertz", "Clock now: sm, memory.", "gpu uuid domain"
)  # fmt: skip
GPU_CLOCK_EVENT_SECONDS = _gpu(
    Kind.COUNTER, "clock_event_seconds_total", "seconds",
    "Time for which clocks were held down, by reason. Misses no short event.",
    "gpu uuid reason",
)  # fmt: skip
GPU_CLOCK_EVENT_ACTIVE = _gpu(
    Kind.GAUGE, "clock_event_active", "",
    "1 if clocks are held down for this reason at the moment of reading.",
    "gpu uuid reason",
)  # fmt: skip
GPU_ECC_ERRORS = _gpu(
    Kind.COUNTER, "ecc_errors_total", "",
    "ECC errors by severity (corrected, uncorrected) and counter (volatile: since driver load;"
    " aggregate: in the GPU's life).",
    "gpu uuid severity counter",
)  # fmt: skip
GPU_REMAPPED_ROWS = _gpu(
    Kind.GAUGE, "remapped_rows", "", "Memory rows remapped, by cause: corrected, uncorrected.",
    "gpu uuid cause",
)  # fmt: skip
GPU_ROW_REMAP_PENDING = _gpu(
    Kind.GAUGE, "row_remap_pending", "", "1 if a row remap waits for a GPU reset."
)
GPU_ROW_REMAP_FAILED = _gpu(
    Kind.GAUGE, "row_remap_failed", "", "1 if a row remap failed: the GPU needs replacing."
)
GPU_RETIRED_PAGES = _gpu(
    Kind.GAUGE, "retired_pages", "",
    "Memory pages retired, by cause: corrected, uncorrected (before Ampere).",
    "gpu uuid cause",
)  # fmt: skip
GPU_PAGE_RETIREMENT_PENDING = _gpu(
    Kind.GAUGE, "page_retirement_pending", "",
    "1 if a page retirement waits for a reboot (before Ampere).",
)  # fmt: skip
GPU_RECOVERY_ACTION = _gpu(
    Kind.GAUGE, "recovery_action", "",
    "What the driver asks for: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain P2P, 4 drain and"
    " reset, 5 IMEX, 6 bus reset, 7 system reboot.",
)  # fmt: skip
GPU_NVLINK_ERRORS = _gpu(
    Kind.COUNTER, "nvlink_errors_total", "", "NVLink errors by kind.", "gpu uuid kind"
)
GPU_PCIE_ERRORS = _gpu(
    Kind.COUNTER, "pcie_errors_total", "", "PCIe errors by kind: replay and others.",
    "gpu uuid kind",
)  # fmt: skip
GPU_XID_EVENTS = _gpu(
    Kind.COUNTER, "xid_events_total", "",
    "Xid events seen since the sidecar started, by code. Older ones are unknown.",
    "gpu uuid xid",
)  # fmt: skip
GPU_XID_LAST = _gpu(
    Kind.GAUGE, "xid_last_timestamp_seconds", "seconds",
    "Unix time of the last Xid event of this code. Alert on this: increase() misses the first.",
    "gpu uuid xid",
)  # fmt: skip
GPU_PROCESS_MEMORY = _gpu(
    Kind.GAUGE, "process_memory_bytes", "bytes",
    "Device memory of all compute processes that the driver shows. In a container it may show"
    " none: absent is not idle.",
)  # fmt: skip
GPU_PROCESSES = _gpu(
    Kind.GAUGE, "processes", "", "Compute processes that the driver shows on this GPU."
)
GPU_CALL_SECONDS = _gpu(
    Kind.GAUGE, "call_seconds", "seconds",
    "Time that the driver took in the last read of this GPU, by call.",
    "gpu uuid call",
)  # fmt: skip
GPU_ERRORS = _gpu(
    Kind.COUNTER, "errors_total", "",
    "Driver calls that failed, by NVML return code. What a GPU or driver does not have is a gap"
    " (/v1/status), not an error. `gpu` is empty for calls that are not about one GPU.",
    "gpu uuid code",
)  # fmt: skip

# --- host ------------------------------------------------------------------------------------


def _host(kind: Kind, name: str, unit: str, labels: str, help: str) -> Family:
    return _declare(Feed.HOST, kind, name, unit, labels, help)


HOST_SOCKETS = _host(
    Kind.GAUGE, "sockets", "", "engine state",
    "TCP sockets on the engine's port by state: established, time_wait, syn_recv and so on.",
)  # fmt: skip
HOST_LISTEN_BACKLOG = _host(
    Kind.GAUGE, "listen_backlog", "", "engine",
    "Connections that wait for the engine to accept them.",
)  # fmt: skip
HOST_LISTEN_OVERFLOWS = _host(
    Kind.COUNTER, "listen_overflows_total", "", "",
    "Connections dropped because a listen queue was full, whole network namespace.",
)  # fmt: skip
HOST_LISTEN_DROPS = _host(
    Kind.COUNTER, "listen_drops_total", "", "",
    "Connections dropped while they were being set up, for a full listen queue or any other"
    " reason, whole network namespace.",
)  # fmt: skip
HOST_TCP_RETRANSMITS = _host(
    Kind.COUNTER, "tcp_retransmitted_segments_total", "", "",
    "TCP segments sent again, whole network namespace.",
)  # fmt: skip
HOST_TCP_SEGMENTS = _host(
    Kind.COUNTER, "tcp_sent_segments_total", "", "",
    "TCP segments sent, whole network namespace.",
)  # fmt: skip
HOST_OPEN_FDS = _host(
    Kind.GAUGE, "engine_open_fds", "", "engine", "File descriptors open in the engine's process."
)
HOST_MAX_FDS = _host(
    Kind.GAUGE, "engine_max_fds", "", "engine", "File descriptors the engine's process may open."
)
HOST_THREADS = _host(
    Kind.GAUGE, "engine_threads", "", "engine", "Threads of the engine's API process."
)
CONTAINER_MEMORY = _host(
    Kind.GAUGE, "container_memory_bytes", "bytes", "scope",
    "Memory of the container (cgroup v2), page cache included, by scope: engine host:port, or"
    " self.",
)  # fmt: skip
CONTAINER_MEMORY_LIMIT = _host(
    Kind.GAUGE, "container_memory_limit_bytes", "bytes", "scope",
    "Memory limit of the container; absent where there is none.",
)  # fmt: skip
CONTAINER_OOM_KILLS = _host(
    Kind.COUNTER, "container_oom_kills_total", "", "scope",
    "Processes of the container killed for want of memory.",
)  # fmt: skip
CONTAINER_CPU_THROTTLED = _host(
    Kind.COUNTER, "container_cpu_throttled_seconds_total", "seconds", "scope",
    "Time for which the container was kept from running by its CPU limit.",
)  # fmt: skip
CONTAINER_CPU = _host(
    Kind.COUNTER, "container_cpu_seconds_total", "seconds", "scope", "CPU time of the container."
)

# --- gateway ---------------------------------------------------------------------------------


def _gateway(kind: Kind, name: str, unit: str, labels: str, help: str) -> Family:
    return _declare(Feed.GATEWAY, kind, "gateway_" + name, unit, labels, help)


GATEWAY_UP = _gateway(
    Kind.GAUGE, "up", "", "gateway",
    "1 if the last read of the gateway's metrics succeeded, 0 if it failed.",
)  # fmt: skip
GATEWAY_REQUESTS = _gateway(
    Kind.COUNTER, "requests_total", "", "gateway model_name status",
    "Requests that the gateway answered its clients, by HTTP status. After a fallback LiteLLM names"
    " the model that answered, not the one that was asked for.",
)  # fmt: skip
GATEWAY_FALLBACKS = _gateway(
    Kind.COUNTER, "fallbacks_total", "", "gateway from_model to_model reason outcome",
    "Requests that the gateway sent on to another model, by outcome: succeeded, failed.",
)  # fmt: skip
GATEWAY_COOLDOWNS = _gateway(
    Kind.COUNTER, "cooldowns_total", "", "gateway model_name reason",
    "Times that the gateway took a deployment out of service for a while.",
)  # fmt: skip
GATEWAY_UPSTREAM_FAILURES = _gateway(
    Kind.COUNTER, "upstream_failures_total", "", "gateway model_name reason",
    "Attempts against an upstream that failed, as far as the gateway counts them: LiteLLM counts at"
    " most one for a request, however often it retried.",
)  # fmt: skip
GATEWAY_UPSTREAM_ATTEMPTS = _gateway(
    Kind.COUNTER, "upstream_attempts_total", "", "gateway model_name",
    "Attempts against an upstream, as far as the gateway counts them. More attempts than requests"
    " means retries or fallbacks; LiteLLM counts at most one failed attempt for a request.",
)  # fmt: skip
GATEWAY_REJECTED = _gateway(
    Kind.COUNTER, "rejected_total", "", "gateway model_name reason",
    "Requests answered with HTTP 429, by exception class: the gateway's own limits, no deployment"
    " left, or a 429 of the upstream handed on.",
)  # fmt: skip
GATEWAY_TIMEOUTS = _gateway(
    Kind.COUNTER, "timeouts_total", "", "gateway model_name",
    "Requests that ended in the gateway's timeout.",
)  # fmt: skip
GATEWAY_DEPLOYMENT_STATE = _gateway(
    Kind.GAUGE, "deployment_state", "", "gateway model_name",
    "Worst state of the model's deployments: 0 healthy, 1 partial outage, 2 outage.",
)  # fmt: skip
GATEWAY_IN_FLIGHT = _gateway(
    Kind.GAUGE, "requests_in_flight", "", "gateway",
    "HTTP requests inside the gateway; the one that reads its metrics is one of them.",
)  # fmt: skip

# --- business events -------------------------------------------------------------------------

EVENT_LABELS = "app model_name tenant sla_class"


def _event(name: str, labels: str, help: str) -> Family:
    return _declare(Feed.EVENTS, Kind.COUNTER, name, "", f"{EVENT_LABELS} {labels}".strip(), help)


AGENT_TURNS = _event(
    "agent_turns_total", "outcome",
    "Agent turns by outcome: success, timeout, format_error, tool_error, aborted, error.",
)  # fmt: skip
SESSIONS = _event(
    "sessions_total", "state",
    "Sessions that entered a state: started, completed, interrupted, escalated (to a human).",
)  # fmt: skip
FALLBACKS = _event(
    "fallbacks_total", "from_model to_model reason level",
    "Times that the application took a degraded path, by level of degradation.",
)  # fmt: skip
REGENERATIONS = _event(
    "regenerations_total", "", "Clicks on 'regenerate': the user was not content."
)
SCHEMA_FAILURES = _event(
    "schema_failures_total", "schema", "Structured outputs that did not match their schema."
)
QUALITY_CHECKS = _event(
    "quality_checks_total", "check result",
    "Named quality checks by result, passed or failed: context_retention, negation,"
    " vague_request, emotion and so on.",
)  # fmt: skip

# --- the judge: an SLO file, judged here -------------------------------------------------------

_SLO_LABELS = "slo_service slo group"  # `service` is often the target's


def _judged(name: str, unit: str, labels: str, help: str) -> Family:
    return _declare(Feed.JUDGE, Kind.GAUGE, f"slo_{name}", unit, labels, help)


SLO_OBJECTIVE = _judged(
    "objective_ratio", "ratio", _SLO_LABELS,
    "The objective, constant. `group` names the labels that the objective is split by, as"
    " tenant=acme; it is empty where it is not.",
)  # fmt: skip
SLO_GOOD = _judged(
    "good_ratio", "ratio", _SLO_LABELS,
    "Share of good events over the base window. Absent without traffic.",
)  # fmt: skip
SLO_BURN_RATE = _judged(
    "burn_rate", "", _SLO_LABELS,
    "How many times too fast the budget burned over the last hour. Absent without traffic.",
)  # fmt: skip
SLO_BUDGET_REMAINING = _judged(
    "budget_remaining_ratio", "ratio", _SLO_LABELS,
    "Share of the period's error budget left: 1 untouched, 0 spent, below 0 overspent. Absent below"
    " the objective's min_coverage.",
)  # fmt: skip
SLO_BUDGET_COVERAGE = _judged(
    "budget_coverage_ratio", "ratio", _SLO_LABELS,
    "Share of the period of which this sidecar knows anything.",
)  # fmt: skip
SLO_STATE = _judged(
    "state", "", _SLO_LABELS,
    "0 ok, 1 no traffic, 2 no data, 3 signal missing.",
)  # fmt: skip
SLO_INCIDENT = _judged(
    "incident", "", _SLO_LABELS,
    "1 while a paging condition holds, 0 while none does. Absent where none can be judged.",
)  # fmt: skip
SLO_ALERTS = _judged(
    "alerts_firing", "", "slo_service tier severity",
    "Alerts that fire, by the tier that they tell.",
)  # fmt: skip
SLO_JUDGED_TIMESTAMP = _judged(
    "judged_timestamp_seconds", "seconds", "slo_service", "Unix time of the latest judgement.",
)  # fmt: skip

# --- the sidecar itself ----------------------------------------------------------------------


def _own(kind: Kind, name: str, unit: str, labels: str, help: str) -> Family:
    return _declare(Feed.SIDECAR, kind, name, unit, labels, help)


BUILD_INFO = _own(
    Kind.GAUGE, "build_info", "", "version python_version", "Always 1; the sidecar's version."
)
SOURCE_UP = _own(
    Kind.GAUGE, "source_up", "", "source", "1 if the last read of the source succeeded, 0 if not."
)
SOURCE_ERRORS = _own(
    Kind.COUNTER, "source_errors_total", "", "source kind", "Failed reads of the source by kind."
)
SOURCE_READ_SECONDS = _own(
    Kind.GAUGE, "source_read_seconds", "seconds", "source",
    "Duration of the last read, or the age at which it was given up.",
)  # fmt: skip
SOURCE_LAST_SUCCESS = _own(
    Kind.GAUGE, "source_last_success_timestamp_seconds", "seconds", "source",
    "Unix time of the last successful read; absent before the first.",
)  # fmt: skip
SOURCE_IN_FLIGHT = _own(
    Kind.GAUGE, "source_in_flight_seconds", "seconds", "source",
    "Age of the read now under way, 0 if there is none. Grows while a source hangs.",
)  # fmt: skip
EVENTS_RECEIVED = _own(
    Kind.COUNTER, "events_received_total", "", "result",
    "Business events by result: accepted, duplicate, invalid.",
)  # fmt: skip
EVENTS_LABEL_OVERFLOW = _own(
    Kind.COUNTER, "events_label_overflow_total", "", "label",
    "Events of which a label value was over the limit and was counted as `other`.",
)  # fmt: skip
EVENTS_JOURNAL_BYTES = _own(
    Kind.GAUGE, "events_journal_bytes", "bytes", "", "Size of the event journal on disk."
)

FAMILIES: Mapping[str, Family] = MappingProxyType(_families)
# What is watched may be chosen by these; labels of what is judged of it are no labels of it.
LABELS = frozenset(
    label
    for family in FAMILIES.values()
    if family.feed is not Feed.JUDGE
    for label in family.labels
)

__all__ = ["FAMILIES", "LABELS", "PREFIX", "Family", "Feed", "Kind", "Moments", "Origin", "Outcome"]
