package main

import "ingot/model"

// sarifLog is a log of one run in the Static Analysis Results Interchange Format, version
// 2.1.0 (OASIS), as much of it as there is to say.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string    `json:"id"`
	ShortDescription sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID              string            `json:"ruleId"`
	RuleIndex           int               `json:"ruleIndex"`
	Level               string            `json:"level"`
	Message             sarifText         `json:"message"`
	Locations           []sarifLocation   `json:"locations,omitempty"`
	PartialFingerprints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	PhysicalLocation struct {
		ArtifactLocation struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	} `json:"physicalLocation"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

func newSARIF(findings []finding) sarifLog {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: make([]sarifResult, len(findings))}
	run.Tool.Driver = sarifDriver{Name: "ingot", Version: thisBuild().Version}
	index := make(map[model.Rule]int)
	for i, r := range model.Rules {
		index[r.Rule] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(r.Rule), sarifText{r.About}})
	}
	prints := fingerprints(findings)
	for i, f := range findings {
		run.Results[i] = sarifResult{
			RuleID: string(f.Rule), RuleIndex: index[f.Rule], Level: string(f.Severity), Message: sarifText{f.text()},
			Locations: f.sarifLocations(), PartialFingerprints: map[string]string{"ingotFinding/v1": prints[i]},
		}
	}
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}

// sarifLocations is where a finding stands, nothing for standard input.
func (f *finding) sarifLocations() []sarifLocation {
	path := repositoryPath(f.File)
	if path == "" {
		return nil
	}
	var at sarifLocation
	at.PhysicalLocation.ArtifactLocation.URI = fileURI(path)
	if f.Line > 0 {
		at.PhysicalLocation.Region = &sarifRegion{f.Line, f.Column}
	}
	return []sarifLocation{at}
}
