//! Options as a plan stores them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use threadtoll_lab::simulated::Fault;
use threadtoll_record::Plan;

use crate::failure::Failure;

pub(crate) type Options = BTreeMap<String, Value>;

/// Validated options. Those that are `None`, false or empty are omitted.
pub(crate) fn given(request: &impl Serialize) -> Result<Options, Failure> {
    let is_given = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        _ => true,
    };
    let options: Options = serde_json::to_value(request)
        .and_then(serde_json::from_value)
        .map_err(|error| Failure::run(format!("cannot serialize the options: {error}")))?;
    Ok(options.into_iter().filter(|(_, value)| is_given(value)).collect())
}

/// The folder with the run's peers in other languages.
pub(super) fn peers(plan: &Plan) -> Option<&str> {
    plan.options.get("peers").and_then(Value::as_str)
}

pub(super) fn twins(plan: &Plan) -> bool {
    plan.options.get("twins").and_then(Value::as_bool) == Some(true)
}

pub(super) fn simulated_machine(plan: &Plan) -> Option<u64> {
    plan.options.get("simulated_machine").and_then(Value::as_u64)
}

/// Names of the cells that must fail on the simulated machine, each with its fault.
pub(super) fn simulated_faults(plan: &Plan) -> Vec<(String, Fault)> {
    let faults = plan.options.get("simulated_faults").and_then(Value::as_array);
    faults.into_iter().flatten().filter_map(|fault| Fault::of_cell(fault.as_str()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_were_not_given_are_left_out() {
        #[derive(Serialize)]
        struct Request {
            batch: Option<u64>,
            keep_awake: bool,
            queues: Vec<&'static str>,
            seed: Option<u64>,
        }
        let request = Request { batch: None, keep_awake: false, queues: vec![], seed: Some(0) };
        assert_eq!(given(&request).unwrap(), Options::from([("seed".into(), 0.into())]));
    }
}
