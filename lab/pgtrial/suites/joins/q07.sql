-- Estimate too low: only reviews of one star can be flagged, and they are written by those who visit most.
select t.department, count(*) as visits, count(distinct r.review_id) as reviews
from reviews r
join products t on t.product_id = r.product_id
join people p on p.person_id = r.person_id
join visits v on v.person_id = p.person_id
where r.stars = 1
  and r.flagged
  and r.written_on >= date '2019-01-01'
  and r.written_on < date '2020-01-01'
  and v.visited_on >= date '2019-01-01'
  and v.visited_on < date '2019-07-01'
  and v.campaign is not null
group by t.department
order by t.department;
